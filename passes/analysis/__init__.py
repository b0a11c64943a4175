"""What passes find out before they decide: costs, facts about values, dependence, cuts."""
