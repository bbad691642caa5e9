"""What Spark's own log says of the last micro-batches, while the query that writes it goes on."""

from spark_glue.state.stored import Checkpoint


def test_entries_that_go_while_the_log_is_read_are_left_out(spark, tmp_path, monkeypatch):
    """Spark keeps 100 entries of a query that runs, and removes the oldest one in each micro-batch."""
    log, text = tmp_path / "offsets", Checkpoint._text
    log.mkdir()
    for batch in range(4):
        (log / f"{batch}").write_text(f'v1\n{{"batchWatermarkMs":{batch * 1000},"batchTimestampMs":7}}\n{{"at":1}}')

    def listed_before(self, name):
        found = text(self, name)
        (log / "0").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Checkpoint, "_batch", 2)
    monkeypatch.setattr(Checkpoint, "_text", listed_before)
    stored = Checkpoint(str(tmp_path), 0, "why")
    assert stored._last_in("offsets") == 3
    (log / "0").write_text("v1\n{}")
    assert [(mark.batch, mark.watermark) for mark in stored.marks().marks] == [(1, 1_000), (2, 2_000)]
