"""Everything that the package offers is there."""


def test_every_name_it_offers_is_there():
    import crowdwise

    for name in crowdwise.__all__:
        assert getattr(crowdwise, name) is not None
    assert "aggregate" in dir(crowdwise)


def test_a_missing_name_is_an_attribute_error():
    import crowdwise

    assert not hasattr(crowdwise, "nonsense")
