"""Which processes a tree has, and that all of them end."""

import os
import subprocess
import sys

import process_trees

# Its threads each start a child and end; the last child's own child is an orphan in a session of its own.
PROGRAM = """
import os, subprocess, sys, threading, time
def start():
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
for thread in [threading.Thread(target=start) for _ in range(3)]:
    thread.start()
    thread.join()
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(60)
os.wait()
print("ready", flush=True)
time.sleep(60)
"""


def test_children_of_ended_threads_and_orphans_are_in_the_tree_and_all_of_it_ends():
    process_trees.adopt_orphans()
    program = subprocess.Popen([sys.executable, "-S", "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    assert len(process_trees.children_of(program.pid)) == 3
    assert len(list(process_trees.process_tree(os.getpid()))) == 6
    assert process_trees.tree_pss_mib() > 5
    process_trees.end_descendants()
    assert list(process_trees.process_tree(os.getpid())) == [os.getpid()]
    program.stdout.close()
    program.wait()


def test_a_process_that_has_ended_has_no_children():
    program = subprocess.Popen(["true"])
    program.wait()
    assert list(process_trees.process_tree(program.pid)) == [program.pid]
