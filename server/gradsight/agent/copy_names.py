"""Names that say: this is the model as it was."""

MEANT_AS_COPY = r"(^|_)(best|target|tgt|teacher|ema|old|prev|previous|backup|snapshot|frozen|initial|init|reference|ref|anchor)(_|\d|$)"
