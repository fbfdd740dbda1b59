"""`ModelOutput`: fields that are read as attributes, as keys and, without the empty ones, by position."""


class ModelOutput:
    def __init__(self, **fields):
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def to_tuple(self):
        return tuple([value for value in self.fields.values() if value is not None])

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.fields[key]
        return self.to_tuple()[key]

    def __contains__(self, key):
        return key in self.fields

    def get(self, key, default=None):
        return self.fields.get(key, default)

    def keys(self):
        return self.fields.keys()

    def items(self):
        return self.fields.items()

    def values(self):
        return self.fields.values()
