"""One table with comments and what workers said about themselves."""

from crowdwise.datasets.parsers import popquorn


def test_ratings_are_whole_and_people_appear_once(published):
    header = "instance_id,user_id,text,offensiveness,gender,race,age,occupation,education\n"
    rows = (
        '5,0,"well, well",1.0,Man,White,35-39,Student,None\n'
        '5,1,"well, well",4.0,Woman,Asian,50-54,Retired,PhD\n'
        "6,0,no,2.0,Man,White,35-39,Student,None\n"
    )
    tables = popquorn.parse(published(raw_data__csv=header + rows))
    assert tables.annotations.to_numpy().tolist() == [["5", "0", 1], ["5", "1", 4], ["6", "0", 2]]
    assert tables.items["text"].to_dict() == {"5": "well, well", "6": "no"}
    assert tables.workers["education"].to_dict() == {"0": "None", "1": "PhD"}
