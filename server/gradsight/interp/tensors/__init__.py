"""The tensor world: storages, graphs, modules and optimizers, without a look at the source."""
