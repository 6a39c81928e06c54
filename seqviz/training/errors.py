"""What goes wrong in training, told in one line."""


class TrainingError(RuntimeError):
    """A run cannot start or go on; the message says what was expected, what came and what to do."""


class DivergedError(TrainingError):
    """A loss or a gradient is no longer finite."""


class SaveError(TrainingError):
    """Something could not be written; what stood there before is whole."""
