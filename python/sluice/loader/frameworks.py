"""What the trainers of Lightning and Hugging Face know of the end of a training, told to sluice.loader.remaining with every step.

Neither is imported here: Lightning loads `lightning_callbacks` by the entry point of this package, and a Hugging Face
trainer is followed once its module is there. Whatever a trainer does not say, or says in a way of its own, is not known.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

from sluice.loader import remaining


def follow_transformers() -> None:
    """Hugging Face's callbacks are chosen when a trainer is made, mostly before there is a loader. So it is their handler
    that is followed, which all trainers share. Does nothing where `transformers` is not imported."""
    handler = getattr(sys.modules.get("transformers.trainer_callback"), "CallbackHandler", None)
    if handler is None or hasattr(handler.on_step_begin, "followed_by_sluice"):
        return
    followed = handler.on_step_begin

    @functools.wraps(followed)
    def on_step_begin(self: Any, args: Any, state: Any, control: Any, **others: Any) -> Any:
        remaining.tell(_samples_of_transformers(args, state))
        return followed(self, args, state, control, **others)

    vars(on_step_begin)["followed_by_sluice"] = True
    handler.on_step_begin = on_step_begin


def lightning_callbacks() -> list:
    """For the entry point of the package `lightning`."""
    return [_lightning_callback(sys.modules["lightning.pytorch"].Callback)]


def pytorch_lightning_callbacks() -> list:
    """For the entry point of the package `pytorch_lightning`."""
    return [_lightning_callback(sys.modules["pytorch_lightning"].Callback)]


def _lightning_callback(base: type) -> Any:
    class TellsWhatRemains(base):
        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_index: int, *others: Any) -> None:
            remaining.tell(_samples_of_lightning(trainer, batch_index))

    return TellsWhatRemains()


def _samples_of_transformers(args: Any, state: Any) -> int | None:
    try:
        steps = state.max_steps - state.global_step
        samples = steps * args.gradient_accumulation_steps * args.train_batch_size
    except (AttributeError, TypeError):
        return None
    return int(samples) if state.max_steps > 0 and samples >= 0 else None


def _samples_of_lightning(trainer: Any, batch_index: int) -> int | None:
    """Lightning ends after `max_epochs` or `max_steps`, whichever comes first; -1 is no limit."""
    try:
        batches = math.inf
        if (trainer.max_epochs or -1) > 0:
            batches = (trainer.max_epochs - trainer.current_epoch) * trainer.num_training_batches - batch_index
        if trainer.max_steps > 0:
            batches = min(batches, (trainer.max_steps - trainer.global_step) * trainer.accumulate_grad_batches)
        samples = batches * trainer.train_dataloader.batch_size
    except (AttributeError, TypeError):
        return None
    return int(samples) if 0 <= samples < math.inf else None
