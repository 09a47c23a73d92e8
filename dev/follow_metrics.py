#!/usr/bin/env python3
"""Follows a run's metrics.jsonl into TensorBoard or Weights & Biases, while the run writes it.

    python3 dev/follow_metrics.py out/run-0001 --tensorboard runs/      needs: pip install tensorboardX
    python3 dev/follow_metrics.py out/run-0001 --wandb PROJECT          needs: pip install wandb

Every number of every record becomes a curve: train/loss, train/lr, train/norm, val/loss, ... A run that was
resumed is cut back to its checkpoint; the steps after it then come again, and the new values are the run's.
It ends with the run's "end" record, or with Ctrl-C; --once reads what is there and ends."""
import argparse
import json
import os
import sys
import time


def writer_of(options):
    """A function (name, value, step), and one that closes."""
    name = os.path.basename(os.path.normpath(options.run))
    if options.tensorboard:
        from tensorboardX import SummaryWriter

        board = SummaryWriter(os.path.join(options.tensorboard, name))
        return board.add_scalar, board.close
    import wandb

    run = wandb.init(project=options.wandb, name=name)
    return lambda key, value, step: run.log({key: value, "step": step}), run.finish


def records(path, once):
    """Each whole line as an object, as it comes. A file that became shorter was cut back by a resume: what
    follows its new end is new."""
    at, rest = 0, ""
    while True:
        size = os.path.getsize(path)
        if size < at:
            at, rest = size, ""
        with open(path, encoding="utf-8") as file:
            file.seek(at)
            text = file.read()
            at = file.tell()
        lines = (rest + text).split("\n")
        rest = lines.pop()
        yield from (json.loads(line) for line in lines if line)
        if once:
            return
        if not text:
            time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the directory of a run, or its metrics.jsonl")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--tensorboard", metavar="DIR", help="write TensorBoard's files below DIR")
    target.add_argument("--wandb", metavar="PROJECT", help="log to this project of Weights & Biases")
    parser.add_argument("--once", action="store_true", help="read what is there, then end")
    options = parser.parse_args()
    path = options.run if os.path.isfile(options.run) else os.path.join(options.run, "metrics.jsonl")
    if not os.path.isfile(path):
        sys.exit(f"follow_metrics: {path}: no such file; name the directory of a run")
    try:
        put, close = writer_of(options)
    except ImportError as error:
        sys.exit(f"follow_metrics: {error.name} is missing: pip install {error.name}")
    try:
        for record in records(path, options.once):
            event, step = record.get("event"), record.get("step")
            if event in ("train", "val", "hella"):
                for key, value in record.items():
                    if key != "step" and isinstance(value, (int, float)) and not isinstance(value, bool):
                        put(f"{event}/{key}", value, step)
            if event == "end":
                break
    except KeyboardInterrupt:
        pass
    close()


if __name__ == "__main__":
    main()
