"""What the client makes of torchvision's transforms, for tests that run it."""

from sluice.lowering.lowered import Lowered
from sluice.lowering.pictures import RGB, Opened, Picture, views_of
from sluice.lowering.sample_code import made_of
from sluice.lowering.transforms import lower_views


def lowered(transform, obstacles, source):
    """Of one image. Adds to `obstacles`."""
    return lower_views(views_of([made_of(transform, Picture(Opened([], RGB), is_rgb=True))]), obstacles, source)


def ops_of(transform, obstacles):
    """Of an image file."""
    return lowered(transform, obstacles, Lowered()).lists()[0]
