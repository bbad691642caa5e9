# Key columns as they come, one or several: hashed block by block, column by column, and compared where hashes agree.
#
# A stored key takes a word for each column of int64, in their order, and one more where there is text: where the record
# of its texts begins in an arena. A record has four bytes of length, then the bytes, for each column of text.
import numpy as np

from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport idx_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.keys.hashing cimport last_word
from fastwin.core.keys.texts cimport same_bytes, stir_text
from fastwin.core.memory.bounds cimport check_int64, check_length, check_offsets
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.hashindex cimport stir

cdef enum:
    LENGTH_BYTES = 4            # before each text of a record
    LONGEST = 0x7fffffff        # of a text, bytes
    KEYS_AT_ONCE = 512          # that are_keys() compares, and pack_keys() packs

cdef struct KeyColumn:
    const int64_t* values       # NULL: it is text
    const int32_t* narrow       # its offsets: one of the two
    const int64_t* wide
    const uint8_t* data

cdef struct PackedKeys:         # see pack_keys()
    const int64_t* words        # of the keys
    const int64_t* others       # NULL: a key has one
    int64_t[KEYS_AT_ONCE] room, more


cdef inline list hold_keys(KeyColumn* columns, tuple texts, list keys, Py_ssize_t n):
    """Points to the columns of n keys; good as long as the list returned.

    texts: bool a column, whether it is text. keys: ``(values, None)`` or ``(offsets, data, None)`` a column, as
    KeyTable takes them. Raises ValueError for what does not suit, nulls, and texts of 2**31 bytes or more.
    """
    cdef const int64_t[::1] wide
    cdef const int32_t[::1] narrow
    cdef const uint8_t[::1] data
    cdef Py_ssize_t c, i, width = len(texts)
    if len(keys) != width:
        raise ValueError(f"keys: a key has {width} columns, got {len(keys)}")
    for c in range(width):
        columns[c].values = columns[c].wide = NULL
        columns[c].narrow = NULL
        columns[c].data = NULL
        if len(keys[c]) != 2 + texts[c] or keys[c][1 + texts[c]] is not None:
            raise ValueError(f"keys: column {c} must be {'text' if texts[c] else 'int64'} without nulls")
        check_length(f"keys: column {c}", len(keys[c][0]) - texts[c], n)
        if not texts[c]:
            wide = keys[c][0]
            check_int64("keys", wide)
            columns[c].values = &wide[0] if n else NULL
            continue
        data = keys[c][1]
        columns[c].data = &data[0] if data.shape[0] else NULL
        if keys[c][0].dtype.itemsize == 4:
            narrow = keys[c][0]
            check_offsets[int32_t](narrow, data.shape[0])
            columns[c].narrow = &narrow[0]
            continue
        wide = keys[c][0]
        check_offsets[int64_t](wide, data.shape[0])
        columns[c].wide = &wide[0]
        for i in range(n):
            if wide[i + 1] - wide[i] > LONGEST:
                raise ValueError(f"keys: a value of column {c} has more than {LONGEST} bytes")
    return list(keys)


cdef inline int64_t offset_of(const KeyColumn* column, Py_ssize_t i) noexcept nogil:
    return column.narrow[i] if column.narrow != NULL else column.wide[i]


cdef inline const uint8_t* text_of(const KeyColumn* column, Py_ssize_t i, int64_t* length) noexcept nogil:
    """Returns where text i of a column begins, and writes its length."""
    cdef int64_t first = offset_of(column, i)
    length[0] = offset_of(column, i + 1) - first
    return column.data + first


cdef inline bint is_one_key(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Whether all of n keys from ``at`` on are the same one; n: at least one."""
    cdef Py_ssize_t c, i
    cdef int64_t length, other
    cdef const uint8_t* text
    cdef const uint8_t* another
    for c in range(width):
        if columns[c].values != NULL and not are_one(columns[c].values + at, n):
            return False
    for c in range(width):
        if columns[c].values != NULL:
            continue
        text = text_of(columns + c, at + n - 1, &length)
        for i in range(n - 1):
            another = text_of(columns + c, at + i, &other)
            if not same_bytes(text, length, another, other):
                return False
    return True


cdef inline void hash_keys(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t at, Py_ssize_t n, uint64_t factor,
                           uint64_t* hashes) noexcept nogil:
    """Stirs n keys from ``at`` on into what the hashes have been begun with."""
    cdef Py_ssize_t c, i
    cdef int64_t length
    cdef const uint8_t* text
    cdef const int64_t* values
    for c in range(width):
        values = columns[c].values
        if values != NULL:
            for i in range(n):
                hashes[i] = stir(hashes[i], <uint64_t> values[at + i], factor)
            continue
        for i in range(n):
            text = text_of(columns + c, at + i, &length)
            hashes[i] = stir_text(hashes[i], factor, text, length)


cdef inline uint64_t second_word(const uint8_t* text, int64_t length) noexcept nogil:
    """Returns what follows the first eight of 9 to 16 bytes, padded with zeros."""
    cdef uint64_t word
    memcpy(&word, text + length - 8, 8)
    return word >> (8 * (16 - length))


cdef inline bint pack_texts(const KeyColumn* column, Py_ssize_t at, Py_ssize_t n, int64_t* words,
                            int64_t* others) noexcept nogil:
    """Writes n texts as words padded with zeros; returns whether they fit, and none ends in a zero. others: NULL: a
    text has one word."""
    cdef int64_t begin = offset_of(column, at), end, length
    cdef const uint8_t* data = column.data
    cdef uint64_t word
    cdef Py_ssize_t i
    for i in range(n):
        end = offset_of(column, at + i + 1)
        length = end - begin
        if length > (8 if others == NULL else 16) or length and data[end - 1] == 0:
            return False
        if length >= 8:
            memcpy(words + i, data + begin, 8)
        elif length == 0:
            words[i] = 0
        elif end < 8:
            words[i] = <int64_t> last_word(data + begin, length)
        else:       # with bytes of the texts before it
            memcpy(&word, data + end - 8, 8)
            words[i] = <int64_t> (word >> (8 * (8 - length)))
        if others != NULL:
            others[i] = 0 if length <= 8 else <int64_t> second_word(data + begin, length)
        begin = end
    return True


cdef inline bint pack_keys(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t at, Py_ssize_t n,
                           PackedKeys* keys) noexcept nogil:
    """Says each of n keys from ``at`` on by one word or two; returns whether that can be. Of two columns each has a
    word: an int, or a text of up to eight bytes; a text that is alone has two. n: at most KEYS_AT_ONCE."""
    cdef bint fit = True
    if columns[0].values != NULL:
        keys.words = columns[0].values + at
        keys.others = NULL
    elif width == 1:
        keys.words, keys.others = keys.room, keys.more
        return pack_texts(columns, at, n, keys.room, keys.more)
    else:
        keys.words = keys.room
        fit = pack_texts(columns, at, n, keys.room, NULL)
    if width == 1 or not fit:
        return fit
    if columns[1].values != NULL:
        keys.others = columns[1].values + at
        return True
    keys.others = keys.more
    return pack_texts(columns + 1, at, n, keys.more, NULL)


cdef inline bint is_key(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t i, const char* words,
                        const uint8_t* arena) noexcept nogil:
    """Whether the key stored in ``words`` is key i."""
    cdef Py_ssize_t c
    cdef int64_t length
    cdef uint32_t own
    cdef bint has_text = False
    cdef const uint8_t* text
    for c in range(width):
        if columns[c].values == NULL:
            has_text = True
        elif (<const int64_t*> words)[0] != columns[c].values[i]:
            return False
        else:
            words += 8
    if not has_text:
        return True
    arena += (<const int64_t*> words)[0]
    for c in range(width):
        if columns[c].values == NULL:
            memcpy(&own, arena, LENGTH_BYTES)
            text = text_of(columns + c, i, &length)
            if not same_bytes(arena + LENGTH_BYTES, own, text, length):
                return False
            arena += LENGTH_BYTES + own
    return True


cdef inline bint are_keys(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t at, const idx_t* picked, Py_ssize_t n,
                          const char* words, Py_ssize_t stride, const idx_t* slots, const uint8_t* arena,
                          uint8_t* others) noexcept nogil:
    """Whether the keys stored ``slots[i] * stride`` bytes behind ``words`` are the keys ``at + picked[i]``; marks those
    that are not. n: at most KEYS_AT_ONCE. Column by column: so several are on their way from memory at a time."""
    cdef const uint8_t* records[KEYS_AT_ONCE]
    cdef const uint8_t* text
    cdef const int64_t* values
    cdef Py_ssize_t c, i, word = 0
    cdef int64_t length
    cdef uint32_t own
    cdef uint8_t found, other = 0
    memset(others, 0, n)
    for c in range(width):
        values = columns[c].values
        if values == NULL:
            continue
        for i in range(n):
            found = (<const int64_t*> (words + slots[i] * stride))[word] != values[at + picked[i]]
            others[i] |= found
            other |= found
        word += 1
    if word == width:
        return other == 0
    for i in range(n):
        records[i] = arena + (<const int64_t*> (words + slots[i] * stride))[word]
    for c in range(width):
        if columns[c].values != NULL:
            continue
        for i in range(n):
            memcpy(&own, records[i], LENGTH_BYTES)
            text = text_of(columns + c, at + picked[i], &length)
            found = not same_bytes(records[i] + LENGTH_BYTES, own, text, length)
            records[i] += LENGTH_BYTES + own
            others[i] |= found
            other |= found
    return other == 0


cdef inline int64_t store_key(const KeyColumn* columns, Py_ssize_t width, Py_ssize_t i, char* words, uint8_t* arena,
                              int64_t used) noexcept nogil:
    """Stores key i; the arena has room behind the bytes used. Returns how many are used now."""
    cdef Py_ssize_t c
    cdef int64_t length, begin = used
    cdef uint32_t told
    cdef bint has_text = False
    cdef const uint8_t* text
    for c in range(width):
        if columns[c].values != NULL:
            (<int64_t*> words)[0] = columns[c].values[i]
            words += 8
            continue
        has_text = True
        text = text_of(columns + c, i, &length)
        told = <uint32_t> length
        memcpy(arena + used, &told, LENGTH_BYTES)
        if length:
            memcpy(arena + used + LENGTH_BYTES, text, length)
        used += LENGTH_BYTES + length
    if has_text:
        (<int64_t*> words)[0] = begin
    return used


cdef inline int64_t record_bytes(Py_ssize_t texts, const uint8_t* record) noexcept nogil:
    """Returns how many bytes a record of so many texts takes."""
    cdef Py_ssize_t _text
    cdef int64_t size = 0
    cdef uint32_t length
    for _text in range(texts):
        memcpy(&length, record + size, LENGTH_BYTES)
        size += LENGTH_BYTES + length
    return size


cdef inline tuple next_texts(const uint8_t* arena, int64_t[::1] at):
    """Returns the texts at some places of an arena as a column of keys, and moves the places on to the next ones."""
    cdef Py_ssize_t i, n = at.shape[0]
    cdef uint32_t length
    offsets_out = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] offsets = offsets_out
    with nogil:
        for i in range(n):
            memcpy(&length, arena + at[i], LENGTH_BYTES)
            offsets[i + 1] = offsets[i] + length
    data_out = np.empty(offsets[n], dtype=np.uint8)
    cdef uint8_t[::1] data = data_out
    with nogil:
        for i in range(n):
            length = <uint32_t> (offsets[i + 1] - offsets[i])
            if length:
                memcpy(&data[offsets[i]], arena + at[i] + LENGTH_BYTES, length)
            at[i] += LENGTH_BYTES + length
    return offsets_out, data_out, None
