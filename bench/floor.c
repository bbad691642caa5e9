/* The floor: count, sum, min and max by (key, window), with nothing around it. No nulls, no overflow check, no growth
   (the table is made large enough beforehand), int64 keys only, no results. What a general engine adds shows against it. */
#include <stdint.h>

typedef struct {
    int64_t key, start;
    int64_t count, sum, smallest, largest;
} Row;

/* table: 2^bits rows, count 0 marks a free one. Returns the number of rows taken. */
int64_t accumulate(int64_t n, const int64_t *keys, const int64_t *times, const int64_t *values, int64_t size, Row *table,
                   int64_t bits)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    int64_t start = 0, end = 0, rows = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t key = keys[i], time = times[i], value = values[i];
        if (time < start || time >= end) { /* times advance, so mostly the window of the event before */
            int64_t rest = time % size;
            start = time - (rest < 0 ? rest + size : rest);
            end = start + size;
        }
        uint64_t at = ((uint64_t)key ^ (uint64_t)start * 0xD6E8FEB86659FD93u) * 0x9E3779B97F4A7C15u;
        at = (at ^ at >> 32) & mask;
        while (table[at].count && (table[at].key != key || table[at].start != start))
            at = (at + 1) & mask;
        Row *row = table + at;
        if (row->count == 0) {
            *row = (Row){key, start, 1, value, value, value};
            rows++;
        } else {
            row->count++;
            row->sum += value;
            row->smallest = value < row->smallest ? value : row->smallest;
            row->largest = value > row->largest ? value : row->largest;
        }
    }
    return rows;
}
