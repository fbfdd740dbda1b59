"""The rules, in reading order: one line for each, the name of its module."""

from __future__ import annotations

from importlib import import_module

from gradsight.model.rule import Rule

MODULES = (
    "inplace_on_saved",
    "inplace_on_leaf",
    "inplace_on_shared_view",
    "silent_write_to_saved",
    "write_without_grad",
    "step_before_backward",
    "alias_of_changed_value",
    "out_with_grad",
    "inplace_in_transform",
    "inplace_recorded",
    "copied_by_tensor",
    "number_round_trip",
    "detached_from_loss",
    "forward_without_grad",
    "operator_without_gradient",
    "hidden_cut",
    "parameter_from_graph",
    "gradient_is_zero",
    "result_ignored",
    "grad_mode_left_off",
    "checkpoint_without_grad",
    "gradient_is_nan",
    "target_not_constant",
    "grad_of_non_leaf",
    "grad_alias",
    "non_leaf_in_optimizer",
    "grad_is_none",
    "grad_read_in_race",
    "deepcopy_of_non_leaf",
    "requires_grad_refused",
    "non_scalar_backward",
    "backward_twice",
    "state_carried_over",
    "graph_kept_alive",
    "penalty_without_graph",
    "grad_of_unused",
    "func_ignores_parameters",
    "graph_grows",
    "gradient_refused",
    "gradients_never_cleared",
    "cleared_before_step",
    "step_without_backward",
    "parameters_replaced",
    "eval_left_on",
    "scheduler_first",
    "scaled_gradients_used",
    "foreign_gradients",
    "frozen_still_moves",
    "iterator_used_up",
    "scaler_misused",
    "parameters_not_optimized",
    "clip_misplaced",
    "model_not_copied",
    "update_lost",
    "freeze_undone",
    "layer_unused",
    "optimizer_refused",
    "statistics_left_behind",
    "gradients_applied_twice",
    "optimizer_made_again",
    "freezes_nothing",
    "not_registered",
    "attribute_typo",
    "before_super_init",
    "layer_made_in_forward",
    "softmax_before_loss",
    "forward_called_directly",
    "parameter_refused",
    "module_repeated",
    "loss_broadcast",
    "gradient_count",
    "tensor_on_ctx",
    "dirty_not_marked",
    "gradient_edited",
    "saved_written_in_backward",
    "differentiated_twice",
    "backward_of_module",
    "gradient_ignored",
)
ALL: tuple[Rule, ...] = tuple(import_module(f"{__name__}.{module}").RULE for module in MODULES)
_BY_CODE: dict[str, Rule] = {rule.code: rule for rule in ALL}
_NO_RULE = Rule("", "", (), lambda event: None, "")


def rule_of(code: str) -> Rule:
    """The rule with this code; one without any facets for what no rule says, such as a comment that silences nothing."""
    return _BY_CODE.get(code, _NO_RULE)


def kin_of(code: str) -> frozenset[str]:
    """The codes that tell the same fault in other words, and the code itself."""
    word = rule_of(code).kin
    return frozenset({code, *(rule.code for rule in ALL if word and rule.kin == word)})


def find(code_or_name: str) -> Rule | None:
    """The rule with this code or name, in any case."""
    wanted = code_or_name.strip().lower()
    return next((rule for rule in ALL if wanted in (rule.code.lower(), rule.name)), None)
