#!/usr/bin/env python3
"""tf.data service: a dispatcher in the trainer's process, and worker servers in processes of their own on the same machine.

usage: tf_data_service.py DISPATCHER     serves as a worker until it is killed
"""

import subprocess
import sys

from peers import Peer, on
from peers.tf_data import PACKAGES, dataset, with_threads


def batches(work):
    import tensorflow as tf

    dispatcher = tf.data.experimental.service.DispatchServer()
    address = dispatcher.target.partition("://")[2]
    workers = [subprocess.Popen([sys.executable, "-m", "peers.tf_data_service", address]) for _ in range(work.workers)]
    # Every worker goes over all samples, each in turns of its own: the setting without a request for each sample. Compression costs more than it saves here.
    made = dataset(work, fast=False).apply(tf.data.experimental.service.distribute(
        tf.data.experimental.service.ShardingPolicy.OFF, dispatcher.target, compression=None))  # fmt: skip
    try:
        yield from made.prefetch(tf.data.AUTOTUNE)
    finally:
        for worker in workers:
            worker.kill()
        del dispatcher


def serve(address):
    import tensorflow as tf

    tf.data.experimental.service.WorkerServer(tf.data.experimental.service.WorkerConfig(dispatcher_address=address)).join()


PEERS = [Peer("tf.data service", on("photographs bytes text", batches), "as tf.data, antialias; no compression", PACKAGES, "tensorflow")]

if __name__ == "__main__":
    serve(sys.argv[1])
