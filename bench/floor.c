/* The floor: count, sum, min and max by (key, window), and by (key, session), with nothing around it. No nulls, no overflow
   check, no growth (tables are made large enough beforehand), int64 keys only; windows without results, sessions with.
   What a general engine adds shows against it. */
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

typedef struct {
    int64_t key, start, end;
    int64_t count, sum, smallest, largest;
} Session;

/* Sessions of events in order of time. table: 2^bits rows, one for each key, count 0 marks a free one. over: room for a
   session of each event. Returns how many there are. */
int64_t accumulate_sessions(int64_t n, const int64_t *keys, const int64_t *times, const int64_t *values, int64_t gap,
                            Session *table, int64_t bits, Session *over)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t key = keys[i], time = times[i], value = values[i];
        uint64_t at = (uint64_t)key * 0x9E3779B97F4A7C15u;
        at = (at ^ at >> 32) & mask;
        while (table[at].count && table[at].key != key)
            at = (at + 1) & mask;
        Session *row = table + at;
        if (row->count && time <= row->end) {
            row->end = time + gap;
            row->count++;
            row->sum += value;
            row->smallest = value < row->smallest ? value : row->smallest;
            row->largest = value > row->largest ? value : row->largest;
        } else {
            if (row->count)
                over[found++] = *row;
            *row = (Session){key, time, time + gap, 1, value, value, value};
        }
    }
    for (uint64_t at = 0; at <= mask; at++)
        if (table[at].count)
            over[found++] = table[at];
    return found;
}

/* Writes sessions as seven columns of n, in order of their ends. counts: as many zeros as there are ms from the first end to
   the last one, and one. */
void write_sessions(int64_t n, const Session *over, int64_t first, int64_t *counts, int64_t span, int64_t *columns)
{
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++)
        counts[over[i].end - first]++;
    for (int64_t i = 0; i < span; i++) {
        int64_t many = counts[i];
        counts[i] = before;
        before += many;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t *row = &over[i].key;
        int64_t place = counts[over[i].end - first]++;
        for (int64_t column = 0; column < 7; column++)
            columns[column * n + place] = row[column];
    }
}
