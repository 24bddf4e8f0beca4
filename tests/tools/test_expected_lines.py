# SPDX-License-Identifier: LGPL-3.0-or-later
"""Bad lines of Ganesha's logs that a test expects: they come, they are no other
test's, and what nobody expects stays."""
import pytest

from lab import BAD, Lab
from lab_program import Log

ONE, OTHER, HARMLESS = (
    "x :FSAL :CRIT :it ended", "x :FSAL :MAJ :it is gone",
    "x :FSAL :WARN :it ended, too")


@pytest.fixture
def written(tmp_path):
    """A lab whose two logs are there, and a function that adds a line."""
    lab, path = Lab(), tmp_path / "ganesha-a.log"
    path.touch()
    lab.whole_logs = [Log(path), Log(tmp_path / "ganesha-b.log")]

    def write(line, name="a"):
        with open(tmp_path / f"ganesha-{name}.log", "a",
                  encoding="utf-8") as file:
            file.write(line + "\n")
    return lab, write


def left(lab):
    """What test_logs.py sees."""
    return [line for log in lab.whole_logs for line in log.matching(BAD)]


def test_lines_of_the_block_are_left_out(written):
    """In each log, also in one that was not there; each of them."""
    lab, write = written
    with lab.expects("it ended", "is gone"):
        write(ONE)
        write(OTHER, "b")
        write(ONE)
    assert left(lab) == []


def test_lines_before_and_after_the_block_stay(written):
    lab, write = written
    write(ONE + " before")
    with lab.expects("it ended"):
        write(ONE)
    write(ONE + " after")
    assert left(lab) == [ONE + " before", ONE + " after"]


def test_other_bad_lines_of_the_block_stay(written):
    lab, write = written
    with lab.expects("it ended"):
        write(ONE)
        write(OTHER)
    assert left(lab) == [OTHER]


@pytest.mark.parametrize("line", [None, OTHER, HARMLESS])
def test_a_block_without_its_line_fails(written, line):
    """Each pattern has to come, and in a bad line: another needs no block."""
    lab, write = written
    with pytest.raises(AssertionError, match=r"no bad line .*it ended"), \
            lab.expects("is|it", "it ended", seconds=0.1):
        write(OTHER)
        if line:
            write(line)


def test_a_line_before_the_block_is_not_its(written):
    lab, write = written
    write(ONE)
    with pytest.raises(AssertionError, match="no bad line"), \
            lab.expects("it ended", seconds=0.1):
        pass
    assert left(lab) == [ONE]


def test_a_block_that_fails_fails_as_it_does(written):
    """Not for the line that did not come then; what came is its own."""
    lab, write = written
    with pytest.raises(ZeroDivisionError), \
            lab.expects("it ended", "is gone"):
        write(ONE)
        raise ZeroDivisionError
    assert left(lab) == []


def test_blocks_in_one_another(written):
    lab, write = written
    with lab.expects("it ended"), lab.may_log("chance", "is gone"):
        write(ONE)
        with lab.expects("it ended"):
            write(ONE)
        write(OTHER)
        write(ONE)
    assert left(lab) == []


def test_what_may_come_need_not(written):
    lab, write = written
    with lab.may_log("chance", "it ended"):
        pass
    with lab.may_log("chance", "it ended"):
        write(ONE)
        write(OTHER)
    assert left(lab) == [OTHER]
