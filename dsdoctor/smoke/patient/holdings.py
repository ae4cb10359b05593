"""What a rank holds of parameters and optimizer states: the proof that ZeRO partitions them."""


def told(engine):
    """The numbers for ``channel.rank_facts``; a number that this DeepSpeed keeps elsewhere is left out."""
    found = {}
    for name, count in (
        ("parameter_elements", _elements),
        ("held_parameter_elements", _held_parameters),
        ("held_state_elements", _held_states),
        ("state_bytes", _state_bytes),
    ):
        try:
            found[name] = count(engine)
        except (AttributeError, TypeError, KeyError, IndexError):
            continue
    return found


def _elements(engine):
    return sum(getattr(p, "ds_numel", None) or p.numel() for p in engine.module.parameters())


def _held_parameters(engine):
    return sum(_held(p) for p in engine.module.parameters())


def _held(parameter):
    partition = getattr(parameter, "ds_tensor", None)
    if partition is None:
        return parameter.numel()
    return getattr(partition, "ds_numel", None) or partition.numel()


def _masters(engine):
    """The fp32 tensors that this rank's optimizer updates."""
    optimizer = engine.optimizer
    for name in ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups"):
        if getattr(optimizer, name, None):
            return getattr(optimizer, name)
    raise AttributeError("no partitions are known")


def _held_states(engine):
    swapper = getattr(engine.optimizer, "optimizer_swapper", None)
    if swapper is not None:  # on NVMe: the tensors are empty, the swapper knows their sizes
        return sum(info.numel() for info in swapper.swap_params_info.values())
    return sum(tensor.numel() for tensor in _masters(engine))


def _state_bytes(engine):
    if getattr(engine.optimizer, "optimizer_swapper", None) is not None:
        raise AttributeError("on NVMe: the files are counted")
    total = sum(t.numel() * t.element_size() for t in _masters(engine))
    for state in engine.optimizer.optimizer.state.values():
        total += sum(t.numel() * t.element_size() for t in state.values() if hasattr(t, "element_size") and t.dim())
    return total
