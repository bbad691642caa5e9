"""Each row of docs/faults.md is held to tests, which are named here."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "faults.md"
STORE, SINKS, SERVE = "tests/store/test_", "tests/spark/sinks/test_store", "tests/serve/test_"
BACK, FAULTS, OPENING, NETWORK = (
    STORE + name for name in ("redis_back", "redis_faults", "redis_opening", "redis_network")
)
DAMAGE, ROCKS, READERS = (STORE + name for name in ("rocks_damage", "rocks_faults", "rocks_readers"))
SENTINEL, CLUSTER, CLOCK = (STORE + name for name in ("redis_sentinel", "redis_cluster", "redis_clock"))
OUTAGES, ANSWERS, STATES = SINKS + "_outages", SERVE + "answers", SERVE + "page_states"

HELD = {
    "How a store knows itself": {
        "`identity`": [f"{ANSWERS}::emptied_and_filled_anew_to_the_same_version", f"{BACK}::another_store_under_the_same_name"],
        "`version`": [f"{STORE}stores::readers_see_whole_batches_while_a_writer_writes", f"{BACK}::part_of_a_batch_is_not_published"],
        "`history`": [f"{ANSWERS}::went_back_and_on_to_the_same_version", f"{SERVE}lines::history_of_a_store_is_bounded"],
        "`since`": [f"{BACK}::accepted_loss_waits_for_panes", f"{STORE}stores::retention_drops_panes_and_keys", f"{CLOCK}::stream_that_pauses"],
        "a mark for each Spark query": [f"{OUTAGES}::outage_with_what_was_kept", f"{OUTAGES}::batches_that_the_sink_was_not_handed", f"{BACK}::an_old_run_does_not_set_a_mark_back"],
    },
    "RocksDB": {
        "the writer is killed, also by a power cut": [f"{ROCKS}::killed_while_writing", f"{STORE}expiry::rocksdb_forces_its_log_to_the_disk_once_for_each_batch", f"{DAMAGE}::mark_is_forced_to_the_disk"],
        "the writer ends, others come": [f"{READERS}::reader_that_was_not_asked_until_the_writer_had_gone", f"{READERS}::reader_follows_writers_that_come_and_go"],
        "the folder is deleted": [f"{READERS}::store_deleted_under_its_writer", f"{ANSWERS}::folder_deleted_and_built_anew"],
        "the folder is deleted and filled anew": [f"{READERS}::store_deleted_and_built_anew_under_a_reader", f"{ANSWERS}::folder_deleted_and_built_anew"],
        "a copy is put in its place": [f"{READERS}::copy_put_in_place_under_its_writer", f"{READERS}::copy_put_in_place_under_a_reader"],
        "the mark `FASTWIN` is empty": [f"{DAMAGE}::empty_mark_is_written_anew"],
        "a data file is damaged, cut or lost": [f"{DAMAGE}::damaged_files", f"{DAMAGE}::damage_is_told", f"{DAMAGE}::writer_over_a_damaged_file"],
        "the log is damaged, cut or lost": [f"{DAMAGE}::damaged_files", f"{DAMAGE}::damage_is_told", f"{DAMAGE}::damage_under_an_open_reader", f"{READERS}::reader_that_cannot_follow_is_opened_anew"],
        "the disk is full": [f"{ROCKS}::full_disk"],
        "opened twice for writing": [f"{ROCKS}::opened_twice_for_writing"],
        "the process is forked": [f"{STORE}rocks_forks::a_writer_stays_with_its_process", f"{STORE}rocks_forks::a_reader_follows_in_a_child"],
    },
    "Redis": {
        "out of reach, slow, loading; the network is cut, and nothing answers": [
            f"{FAULTS}::slow", f"{FAULTS}::no_server", f"{NETWORK}::cut_between_batches", f"{NETWORK}::cut_within_a_batch",
            f"{NETWORK}::network_without_a_server", f"{OUTAGES}::cut_network_that_is_mended", f"{OUTAGES}::cut_network_beyond_patience",
            f"{OUTAGES}::task_fails_when_its_patience_ends", f"{OUTAGES}::tasks_that_fail_are_run_again", f"{STATES}::broken_store_keeps_the_figures_and_says_so",
        ],
        "started again or emptied within a batch": [f"{BACK}::back_within_a_batch", f"{BACK}::emptied_within_a_batch", f"{OUTAGES}::restarted_within_a_batch", f"{FAULTS}::stopped_in_the_middle_of_a_batch"],
        "started again from an old dump: batches are missing": [f"{BACK}::back_between_batches", f"{OUTAGES}::went_back_between_runs", f"{OUTAGES}::went_back_between_batches", f"{ANSWERS}::went_back_and_on_to_the_same_version"],
        "emptied": [f"{FAULTS}::started_again_empty", f"{SINKS}::redis_emptied_between_batches", f"{ANSWERS}::emptied_and_filled_anew_to_the_same_version"],
        "emptied and filled by another writer": [f"{BACK}::another_store_under_the_same_name", f"{ANSWERS}::rows_of_another_store"],
        "the stream pauses, or lags behind the clock, for more than three retentions": [f"{CLOCK}::stream_that_pauses", f"{CLOCK}::stream_slower_than_the_clock", f"{CLOCK}::names_live_longer_than_since_says"],
        "full (`maxmemory`)": [f"{OUTAGES}::what_time_does_not_mend", f"{FAULTS}::out_of_memory"],
        "would evict (`maxmemory` with another policy than `noeviction`)": [f"{OPENING}::server_that_evicts_is_refused"],
        "wrong user or password": [f"{FAULTS}::wrong_password"],
        "the user may not run a command": [f"{OUTAGES}::what_time_does_not_mend", f"{OPENING}::denied_is_not_a_wrong_password"],
        "a replica": [f"{OPENING}::replica_is_for_readers"],
        "`redis://` names a Sentinel, or one of several masters of a Redis Cluster": [f"{OPENING}::sentinel_is_refused", f"{OPENING}::cluster_of_several_masters_is_refused"],
        "`redis+cluster://` names a store that `redis://` has made": [f"{OPENING}::names_are_those_that_the_store_was_made_with"],
        "older than Redis 6.2": [f"{OPENING}::server_that_is_too_old_is_refused"],
        "a foreign value under one of our names": [f"{OUTAGES}::what_time_does_not_mend", f"{FAULTS}::foreign_value_is_named_and_stays", f"{FAULTS}::foreign_number_in_a_shelf_is_named", f"{FAULTS}::foreign_revision_in_a_shelf_is_named"],
    },
    "Sentinel and Redis Cluster": {
        "the master dies": [f"{SENTINEL}::failover", f"{CLUSTER}::failover", f"{OUTAGES}::failover"],
        "the new master has all batches": [f"{SENTINEL}::failover", f"{CLUSTER}::failover"],
        "the new master lacks the last batches": [f"{SENTINEL}::failover_that_loses_a_batch", f"{CLUSTER}::failover_that_loses_a_batch"],
        "a failover within a batch": [f"{SENTINEL}::failover_by_hand_within_a_batch", f"{BACK}::two_failovers_within_a_batch"],
        "the old master comes back": [f"{CLUSTER}::failover"],
        "the network is cut, and the old master still answers": [f"{OUTAGES}::tasks_on_another_server_than_the_driver", f"{SENTINEL}::failover_that_loses_a_batch"],
        "all Sentinels are away": [f"{SENTINEL}::all_sentinels_away"],
        "the Sentinels know no such service": [f"{SENTINEL}::what_is_refused_when_opening"],
        "the slot is being moved": [f"{CLUSTER}::slots_move_in_the_middle"],
        "another master of the Cluster dies": [f"{CLUSTER}::another_master_dies"],
    },
    "Both": {
        "an int sum of panes beyond int64, also for a `Mean`": [f"{STORE}stores::sums_that_overflow_say_so"],
        "a window asked off the panes' grid, or too much at once": [f"{STORE}asked::questions_without_sense_are_refused", f"{STORE}stores::series_without_sense_are_refused"],
        "a writer lags behind another one of the same store by more than retention, or starts again from earlier in the input": [f"{STORE}left_out::a_writer_that_lags_behind_another"],
        "a key longer than 1,024 bytes as text, or not in UTF-8, such as a path that somebody has made up": [f"{STORE}left_out::keys_that_are_too_long", f"{STORE}left_out::keys_that_are_no_utf8"],
        "other text that is not UTF-8": [f"{STORE}left_out::text_of_aggregates_that_is_no_utf8", f"{SINKS}::bytes_of_strangers_end_no_query"],
        "a spec with other keys, aggregates or panes than the store has, or with aggregates of another column or condition": [f"{STORE}stores::another_spec_is_refused", f"{STORE}other_panes::other_columns_and_conditions_under_the_same_name"],
        "windows in place of panes, or panes of another width": [f"{STORE}other_panes::windows_are_no_panes", f"{STORE}other_panes::panes_of_another_width"],
        "`put(panes, watermark=...)` within a pane, such as a stream's own watermark": [f"{STORE}watermark::watermark_of_the_stream_within_a_pane", f"{STORE}watermark::store_with_a_watermark_within_a_pane_is_read"],
    },
}  # fmt: skip
"""For each heading and row of the page, the tests without which it could be wrong: FILE::NAME, without ``test_``."""


def rows(text: str) -> dict[str, list[str]]:
    """Returns the first cell of each row, by the heading above it."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif (cells := re.match(r"\| ([^|]+) \|", line)) and cells[1] not in ("---", "what happens"):
            found.setdefault(heading, []).append(cells[1])
    return found


def test_each_row_is_held_to_tests():
    assert rows(PAGE.read_text()) == {heading: list(held) for heading, held in HELD.items()}


@pytest.mark.parametrize("name", sorted({one for held in HELD.values() for tests in held.values() for one in tests}))
def test_a_test_is_there(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / f"{path}.py").read_text())
    assert f"test_{function}" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_row_that_is_new_is_seen():
    page = "## Redis\n| what happens | writer |\n| --- | --- |\n| full | no |\n| cut `x` | no |\n"
    assert rows(page) == {"Redis": ["full", "cut `x`"]}
