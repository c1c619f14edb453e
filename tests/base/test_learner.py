"""What every learner shares."""

from crowdwise.learn import EM, LIA


def test_a_parameter_of_a_part_is_set_in_this_model_only():
    given = EM(epochs=3)
    model = LIA(objective=given).set_params(objective__rounds=1, n_slots=2)
    assert (model.objective.rounds, model.objective.epochs, model.n_slots) == (1, 3, 2)
    assert given.rounds == 5
    LIA().set_params(objective__rounds=1)
    assert LIA().objective.rounds == 5


def test_a_new_part_is_set_before_its_parameters():
    part = EM(rounds=2)
    model = LIA().set_params(objective=part, objective__epochs=7)
    assert (model.objective.rounds, model.objective.epochs) == (2, 7)
