"""A household in which plans are carried out: scenes, actions, plans."""
