"""easydict: a dict whose items are attributes, too."""


class EasyDict(dict):
    def __init__(self, d=None, **kwargs):
        super().__init__()
        for name, value in {**(d or {}), **kwargs}.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        self[name] = EasyDict(value) if type(value) is dict else value

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)
