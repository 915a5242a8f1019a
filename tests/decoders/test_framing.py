"""Lines and documents in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders.framing import Document, Lines
from tests.decoders.feeds import cut

texts = st.text("ab\n", max_size=60).map(str.encode)


@given(text=texts, places=st.lists(st.integers(0, 100), max_size=6), max_bytes=st.integers(1, 8))
def test_any_cut_gives_the_lines_of_split_and_reports_each_one_that_is_too_long(text, places, max_bytes):
    frames = Lines(max_bytes)
    lines, too_long = [], []
    for piece in cut(text, places):
        complete, beginnings = frames.feed(piece)
        lines += complete
        too_long += beginnings
    lines += frames.finish()
    expected = [line for line in text.split(b"\n") if line]
    assert lines == [line for line in expected if len(line) <= max_bytes]
    assert [line[:max_bytes] for line in too_long] == [line[:max_bytes] for line in expected if len(line) > max_bytes]


@given(text=texts, places=st.lists(st.integers(0, 100), max_size=6))
def test_a_document_is_all_its_pieces_unless_it_is_too_long(text, places):
    document = Document(20)
    too_long = [beginning for piece in cut(text, places) for beginning in document.feed(piece)]
    fits = len(text) <= 20
    assert document.finish() == ([text] if text and fits else [])
    assert too_long == ([] if fits else [text[:20]])
    assert document.finish() == []
