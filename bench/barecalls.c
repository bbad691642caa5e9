/* The least that user functions in Python cost: the same calls of the same methods, in the same order, and nothing
 * around them. Arguments are there beforehand; no keys, no timers, no state, no Arrow.
 *
 * methods: on_element, on_event_time and clear of a trigger, create_accumulator, add and get_result of an aggregate,
 * process of a function; None for those that are not there. window_of: int32[n], the window of each event. rows, times:
 * of each event. windows, ends, keys: of each window, in the order in which they fire.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define CALL(method, ...) \
    PyObject_Vectorcall(method, (PyObject *[]){NULL, __VA_ARGS__} + 1, \
                        (sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *)) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)

static int take(PyObject *list, PyObject *found) {
    int failed = found == NULL || PyList_Append(list, found) < 0;
    Py_XDECREF(found);
    return failed;
}

PyObject *bare_calls(PyObject *methods, const int32_t *window_of, Py_ssize_t n, PyObject *rows, PyObject *times,
                     PyObject *windows, PyObject *ends, PyObject *keys, PyObject *context) {
    PyObject *m[7], *answer, *row;
    Py_ssize_t i, count = PyList_GET_SIZE(windows);
    for (i = 0; i < 7; i++)
        m[i] = PyTuple_GET_ITEM(methods, i) == Py_None ? NULL : PyTuple_GET_ITEM(methods, i);
    PyObject **held = PyMem_Calloc(count ? count : 1, sizeof(PyObject *)), *results = PyList_New(0);
    if (held == NULL || results == NULL)
        goto failed;
    for (i = 0; i < n; i++) {
        int32_t w = window_of[i];
        row = PyList_GET_ITEM(rows, i);
        if (held[w] == NULL && (held[w] = m[3] ? PyObject_CallNoArgs(m[3]) : PyList_New(0)) == NULL)
            goto failed;
        if (m[4]) {
            if ((answer = CALL(m[4], row, held[w])) == NULL)
                goto failed;
            Py_SETREF(held[w], answer);
        } else if (PyList_Append(held[w], row) < 0)
            goto failed;
        if (m[0]) {
            if ((answer = CALL(m[0], row, PyList_GET_ITEM(times, i), PyList_GET_ITEM(windows, w), context)) == NULL)
                goto failed;
            Py_DECREF(answer);
        }
    }
    for (i = 0; i < count; i++) {
        PyObject *window = PyList_GET_ITEM(windows, i);
        if (m[1]) {
            if ((answer = CALL(m[1], PyList_GET_ITEM(ends, i), window, context)) == NULL)
                goto failed;
            Py_DECREF(answer);
        }
        if (m[5]) {
            if (take(results, CALL(m[5], held[i])))
                goto failed;
        } else {
            PyObject *rest = CALL(m[6], PyList_GET_ITEM(keys, i), context, held[i]);
            PyObject *each = rest == NULL ? NULL : PyObject_GetIter(rest);
            Py_XDECREF(rest);
            if (each == NULL)
                goto failed;
            while ((answer = PyIter_Next(each)) != NULL)
                if (take(results, answer)) {
                    Py_DECREF(each);
                    goto failed;
                }
            Py_DECREF(each);
            if (PyErr_Occurred())
                goto failed;
        }
        Py_CLEAR(held[i]);
        if (m[2]) {
            if ((answer = CALL(m[2], window, context)) == NULL)
                goto failed;
            Py_DECREF(answer);
        }
    }
    PyMem_Free(held);
    return results;
failed:
    for (i = 0; held != NULL && i < count; i++)
        Py_XDECREF(held[i]);
    PyMem_Free(held);
    Py_XDECREF(results);
    return NULL;
}
