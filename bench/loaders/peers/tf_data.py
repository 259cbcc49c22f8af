"""tf.data: TensorFlow's usual recipe without antialias, and the one nearest to PIL's pixels. Images are HWC."""

import functools

from peers import Peer, on

PACKAGES = ("tensorflow-cpu==2.21.0",)
MEAN, DEVIATION = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


def crop(data, fast):
    """RandomResizedCrop with TensorFlow's sampler of boxes; only the box is decoded."""
    import tensorflow as tf
    from workloads import IMAGE_SIDE

    whole = tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(data), whole, min_object_covered=0.0, aspect_ratio_range=(3 / 4, 4 / 3), area_range=(0.08, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True,
    )  # fmt: skip
    window = tf.concat([begin[:2], size[:2]], 0)
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_FAST" if fast else "INTEGER_ACCURATE")
    image = tf.image.resize(image, [IMAGE_SIDE, IMAGE_SIDE], antialias=not fast)
    return tf.image.random_flip_left_right(image)


def with_colours(image):
    """SimCLR's colours and blur on values from 0 to 1."""
    import tensorflow as tf

    def jitter(image):
        image = tf.image.random_brightness(image, 0.8)
        image = tf.image.random_contrast(image, 0.2, 1.8)
        image = tf.image.random_saturation(image, 0.2, 1.8)
        return tf.clip_by_value(tf.image.random_hue(image, 0.2), 0.0, 1.0)

    def blur(image):
        at = tf.range(-11.0, 12.0)
        weights = tf.exp(-(at**2) / (2 * tf.random.uniform([], 0.1, 2.0) ** 2))
        weights /= tf.reduce_sum(weights)
        for shape in ([23, 1, 1, 1], [1, 23, 1, 1]):
            kernel = tf.tile(tf.reshape(weights, shape), [1, 1, 3, 1])
            image = tf.nn.depthwise_conv2d(image[tf.newaxis], kernel, [1, 1, 1, 1], "SAME")[0]
        return image

    def sometimes(share, change, image):
        return tf.cond(tf.random.uniform([]) < share, lambda: change(image), lambda: image)

    image = sometimes(0.8, jitter, image / 255)
    image = sometimes(0.2, lambda image: tf.image.grayscale_to_rgb(tf.image.rgb_to_grayscale(image)), image)
    return sometimes(0.5, blur, image)


def sample(work, fast, path, label):
    import tensorflow as tf

    image = crop(tf.io.read_file(path), fast)
    if work.workload.name == "bytes":
        return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8), label
    if work.workload.name == "contrastive":
        return with_colours(image), label
    return (image - tf.constant(MEAN)) / tf.constant(DEVIATION), label


def tokenizer(work):
    import tensorflow as tf
    from workloads import TOKENS

    words, numbers = list(work.vocabulary), list(work.vocabulary.values())
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, tf.constant(numbers, tf.int64)), 0)

    def of(line):
        found = table.lookup(tf.strings.split(tf.strings.lower(line, "utf-8"))[:TOKENS])
        return tf.pad(found, [[0, TOKENS - tf.shape(found)[0]]])

    return of


def dataset(work, fast):
    """Batches, not yet made ahead."""
    import tensorflow as tf

    if work.workload.name == "text":
        made = tf.data.Dataset.from_tensor_slices(work.lines).map(tokenizer(work), num_parallel_calls=tf.data.AUTOTUNE)
    else:
        files, labels = zip(*work.photographs, strict=True)
        made = tf.data.Dataset.from_tensor_slices((list(files), list(labels)))
        made = made.map(functools.partial(sample, work, fast), num_parallel_calls=tf.data.AUTOTUNE)
    return made.batch(work.batch_size, drop_remainder=True)


def with_threads(made, work):
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = work.workers
    return made.with_options(options)


def batches(work, fast=False):
    import tensorflow as tf

    return iter(with_threads(dataset(work, fast).prefetch(tf.data.AUTOTUNE), work))


def fast_batches(work):
    return batches(work, fast=True)


PEERS = [
    Peer("tf.data", on("photographs bytes contrastive", fast_batches), "no antialias, fast DCT", PACKAGES, "tensorflow"),
    Peer("tf.data, antialias", on("photographs bytes text", batches), "antialias, accurate DCT", PACKAGES, "tensorflow"),
]
