"""munch: a dict whose items are attributes, too."""


class Munch(dict):
    def __getattr__(self, k):
        if k in self:
            return self[k]
        raise AttributeError(k)

    def __setattr__(self, k, v):
        self[k] = v

    def toDict(self):
        return unmunchify(self)

    def copy(self):
        return Munch(self)


class DefaultMunch(Munch):
    def __init__(self, *args, **kwargs):
        super().__init__(*args[1:], **kwargs)
        dict.__setattr__(self, "_default", args[0] if args else None)

    def __getattr__(self, k):
        return self.get(k, self._default)


def munchify(x, factory=Munch):
    if isinstance(x, dict):
        return factory({key: munchify(value, factory) for key, value in x.items()})
    if isinstance(x, (list, tuple)):
        return type(x)([munchify(value, factory) for value in x])
    return x


def unmunchify(x):
    if isinstance(x, dict):
        return {key: unmunchify(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([unmunchify(value) for value in x])
    return x
