"""How the answers of queries of sketches are stored, as the assembler told them last."""

from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.ways.sketches.assembler import ToldAnswers
from streaming.servers.ways.sketches.pacing import SketchPace
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


def _encoded(state: ToldAnswers) -> Parts:
    pace = [list(state.pace.costs.items()), list(state.pace.asked_us.items()), state.pace.free_us]
    head = {"pace": pace, "answers": list(state.answers.items()), "left_out": left_out_rows(state.left_out)}
    return {HEAD: Tables([with_head(NOTHING, head)])}


def _decoded(parts: Parts) -> ToldAnswers:
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    costs, asked_us, free_us = head["pace"]
    pace = SketchPace(dict(costs), dict(asked_us), free_us)
    return ToldAnswers(dict(head["answers"]), left_out_of_rows(head["left_out"]), pace)


TOLD_ANSWERS = Codec(lambda batch: ToldAnswers(), _encoded, _decoded)
