"""Templates of generated text without calls: prose, questions and chat, with and without numbers.

Tools should stay quiet here, so nothing is calculated. Slots make many different texts: `{name}`, `{thing}`,
`{place}`, `{city}`, `{n}` (a small number), `{year}`, `{price}`, `{time}`, `{adjective}` and `{weather}`.
"""

from __future__ import annotations

NAMES = (
    "Mira", "Jonas", "Aisha", "Tomek", "Lucia", "Ravi", "Hanna", "Kofi", "Elif", "Oskar", "Nadia", "Pablo", "Ingrid",
    "Yuki", "Dora", "Samir",
)  # fmt: skip
THINGS = (
    "bricks", "tickets", "seeds", "bottles", "stamps", "screws", "postcards", "tiles", "lemons", "candles", "buttons",
    "chairs", "books", "marbles", "shells", "pencils",
)  # fmt: skip
PLACES = ("warehouse", "harbor", "museum", "school", "farm", "bakery", "library", "factory", "theater", "market")
CITIES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Turin", "Accra", "Kyoto", "Bergen", "Lima", "Gdansk")
ADJECTIVES = ("quiet", "old", "bright", "narrow", "famous", "small", "modern", "windy")
WEATHERS = ("a light rain", "thick fog", "warm sunshine", "the first snow", "a strong wind", "a clear sky")

# Text alone.
PROSE: tuple[str, ...] = (
    "{name} walked through the {adjective} streets of {city} in {weather} and stopped in front of the {place}. Nobody "
    "was there yet, so {name} sat down and read a letter.",
    "The {place} in {city} opened in {year}. It burned down once, was built again, and is now known for its {thing}.",
    "A {adjective} road leads from {city} to the coast. Drivers such as {name} meet {weather} there at {time}.",
    "{name} and {other} have shared a room since {year}. One of them collects {thing}, the other one paints.",
    "Please return the {thing} to the {place} by {time}. The staff of {city} will be glad to help you.",
    "In {year} the {adjective} {place} of {city} hired {name} as its director. The papers wrote about it for weeks.",
    "The recipe asks for {n} lemons, a little salt and fresh bread. {name} always adds honey, which {other} dislikes.",
    "Bus {n} leaves {city} at {time}. It stops at the {place}, at the {adjective} bridge and at the station.",
    '"I have never seen so many {thing}," said {name}. {other} only laughed and closed the door of the {place}.',
    "A ticket costs {price} dollars and is valid until {time}. Children travel free of charge in {city}.",
    "Chapter {n} describes how {name} came to {city} in {weather}. The {adjective} {place} appears there for the first "
    "time.",
    "Version {n} was released in {year}. It fixes the sorting of {thing} and changes the color of the start page.",
)
# Questions with answers, as in a chat.
DIALOGUES: tuple[tuple[str, str], ...] = (
    ("What should I see in {city}?", "Visit the {adjective} {place} first. {name} will show you the {thing} there."),
    ("When does the {place} open, {name}?", "It opens at {time} and stays open until the evening."),
    ("Who wrote the report of {year}?", "It was written by {name}, with help from {other}, and printed in {city}."),
    ("Can you suggest a gift for {name}?", "A box of {thing} would be a friendly gift, or a book about {city}."),
    ("Is {city} a good place for a holiday?", "Yes, says {name}: people like its {adjective} squares and {weather}."),
    ("Write a short greeting for {name}.", "Dear {name}, welcome to the {place}! We are glad you are here. {other}"),
    ("How do I store {thing}?", "Keep them dry, in a {adjective} room. At the {place} {name} wraps them in paper."),
    ("Which bus goes to the {place} in {city}?", "Take bus {n} from the station; it leaves at {time}."),
    ("What does a visit to the {place} cost?", "A visit costs {price} dollars. Members of the club pay nothing."),
    ("Why is the {place} closed today?", "It is closed because of {weather}. It should open again tomorrow at {time}."),
    ("Where does {name} live?", "In {city}, in a {adjective} house close to the {place}, together with {other}."),
    ("Name {n} things to pack for {city}.", "Take a coat for {weather}, a map, and good shoes; the rest can be bought "
     "there."),
)  # fmt: skip
