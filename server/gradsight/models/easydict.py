"""easydict: a dict whose items are attributes, too."""


class EasyDict(dict):
    def __init__(self, items=None, **further):
        super().__init__(items or {}, **further)

    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value
