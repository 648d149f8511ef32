"""Annotations of GSM8K become calls; what is no single operation is refused with its line."""

from __future__ import annotations

import re

import pytest

from toolken.data.example import Example
from toolken.data.readers import read_row
from toolken.data.rows import RawRow
from toolken.errors import UserError

TOOLS = ("add", "subtract", "multiply", "divide")


def read(answer: str) -> Example:
    return read_row(RawRow("g.jsonl:7", {"question": "How many?", "answer": answer}), TOOLS)


def test_an_answer_is_one_line_with_its_results_in_place() -> None:
    example = read("He sold 48/2 = <<48/2=24>>24 clips.\nIn all 48+24 = $<<48+24=72>>72.\n#### 72")
    assert example.answer == "He sold 48/2 = 24 clips. In all 48+24 = $72. #### 72"
    spans = [(call.tool, call.arguments, call.start, call.end) for call in example.calls]
    assert spans == [("divide", "48, 2", 15, 17), ("add", "48, 24", 41, 43)]


@pytest.mark.parametrize(
    ("annotation", "call"),
    [
        ("<<5-3=2>>2", ("subtract", "5, 3", "2")),
        ("<<0.2*50=10>>10", ("multiply", "0.2, 50", "10")),
        ("<<.5*8=4>>4", ("multiply", ".5, 8", "4")),
        ("<< 12 + 5 = 17 >>17", ("add", "12, 5", "17")),
        ("<<5--3=8>>8", ("subtract", "5, -3", "8")),
        ("<<5+11+33=49>>49", ("add", "5, 11, 33", "49")),
        ("<<4500*5=22500>>22,500", ("multiply", "4500, 5", "22,500")),
        ("<<600+550=1150.00>>1,150.00", ("add", "600, 550", "1,150.00")),
        ("<<1/4=0.25>>.25", ("divide", "1, 4", ".25")),
        ("<<3-5=-2>>-2", ("subtract", "3, 5", "-2")),
    ],
)
def test_one_operation_is_one_call(annotation: str, call: tuple[str, str, str]) -> None:
    example = read(f"That is {annotation}, so there.\n#### 1")
    assert [(found.tool, found.arguments, example.result(found)) for found in example.calls] == [call]


def test_a_bare_number_is_text() -> None:
    example = read("There are <<5=5>>5 of them, 5+2=<<5+2=7>>7 with his.\n#### 7")
    assert example.answer == "There are 5 of them, 5+2=7 with his. #### 7"
    assert [call.tool for call in example.calls] == ["add"]


@pytest.mark.parametrize("expression", ["16-3-4", "100/5/2", "4*2+2", "(5+3)*2", "x+2", "+3+4", "5%*10", "", "3*"])
def test_a_row_with_an_operation_that_no_tool_has_is_refused(expression: str) -> None:
    with pytest.raises(UserError, match=r"g\.jsonl:7: <<" + re.escape(expression) + "=...>> is not one operation"):
        read(f"First <<1+1=2>>2, then <<{expression}=9>>9.\n#### 9")


@pytest.mark.parametrize("following", ["8", "", "two", "25", "2.5"])
def test_a_result_that_the_text_does_not_repeat_is_refused(following: str) -> None:
    with pytest.raises(UserError, match="not by its result"):
        read(f"That is <<1+1=2>>{following} of them.\n#### 2")


def test_a_tool_that_is_not_in_the_set_is_refused() -> None:
    with pytest.raises(UserError, match="no tool <divide>"):
        read_row(RawRow("g:1", {"question": "Q", "answer": "<<4/2=2>>2"}), ("add",))


def test_answers_without_annotations_are_read_as_before() -> None:
    assert read("The sum is <add>(1, 2)=3<eoe>3.").calls[0].tool == "add"
    assert read("No calculation.\n#### 3").answer == "No calculation.\n#### 3"
