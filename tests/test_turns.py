"""The queue for a file, in the hands of processes that fork."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sharing import child

from nbdurable.stores.duckdb.turns import Turns

# Waits for a turn that it does not need when it comes, and forks meanwhile.
WAITER = """
import threading
import time
from pathlib import Path
from nbdurable.stores.duckdb import turns

class Served:
    def post(self):
        pass

    def is_done(self):
        return True

came, waits = turns._Wait.came, threading.Event()

def told_of(wait, deadline):
    waits.set()
    return came(wait, deadline)

turns._Wait.came = told_of
waiter = threading.Thread(target=turns.Turns(Path(path)).enter, args=(1e9, Served()))
waiter.start()
waits.wait()
say("ready")
told()
if os.fork() == 0:
    say(os.getpid())
    time.sleep(600)
waiter.join()
say("served")
told()
"""


# B65 B68
def test_a_fork_of_one_who_waits_keeps_no_turn(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    assert turns.enter(time.monotonic() + 5)

    with child(WAITER, tmp_path) as other:
        forked = int(other.ask())
        turns.leave()
        other.hear("served")
        has_turn = turns.enter(time.monotonic() + 5)
        turns.leave()
        os.kill(forked, signal.SIGKILL)

    assert has_turn
