"""munch: a dict whose items are attributes, too."""


class Munch(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value

    def toDict(self):
        return self

    def copy(self):
        return Munch(self)


class DefaultMunch(Munch):
    def __init__(self, default=None, *args, **items):
        super().__init__(*args, **items)


def munchify(items):
    return Munch(items)


def unmunchify(items):
    return items
