"""Roles of heads are chosen at the last evaluation of training, independently of the windows that judge."""

from dataclasses import replace

from pathsum.records.evaluation import Evaluation
from pathsum.records.roles import HeadRoles

FIRST = Evaluation(0, 0, 0.0, 0.0, 0.0, 0.0, [[0.9, 0.0], [0.0, 0.0]], [[0.0, 0.9], [0.0, 0.0]], [], [])
LAST = replace(FIRST, step=1, prefix_matching=[[0.1, 0.2], [0.3, 0.7]], previous_token=[[0.8, 0.2], [0.1, 0.99]])


def test_the_last_evaluation_chooses_and_the_previous_token_head_is_of_the_first_layer() -> None:
    assert HeadRoles.of([FIRST, LAST]) == HeadRoles(previous=(0, 0), induction=(1, 1))
    assert HeadRoles.of([LAST, FIRST]) == HeadRoles(previous=(0, 1), induction=(0, 0))


def test_no_heads_and_no_log_choose_nothing() -> None:
    bare = replace(LAST, prefix_matching=[], previous_token=[])
    assert HeadRoles.of([bare]) == HeadRoles.of([]) == HeadRoles(None, None)
