"""Twenty notes as a person keeps them, twenty questions they answer, and twenty they don't.

What the minimum score is calibrated on: a question without an answer must find nothing, because what is found decides
whether a small model is asked at all. Both sets were in view when the constants were chosen: neither is held out.
"""

from __future__ import annotations

from pathlib import Path

NOTES = {
    "memory/2026-11-02.md": """# 2026-11-02

- 08:15 my dog is called Biscuit
- 09:40 dentist appointment moved to 14 January at 9:30, Dr. Okafor
- 12:05 the wifi at the cabin is "Otterhaven", router behind the bookshelf
- 18:22 my sister Hannah moved to Oslo and works as a nurse
- 21:03 we decided to use postgres for the ledger, not mongo
""",
    "memory/2026-11-05.md": """# 2026-11-05

- 07:55 I'm allergic to walnuts
- 10:10 car insurance is with Alba, policy ends in March
- 13:47 Tomas owes me 40 euros for the concert tickets
- 16:30 favourite tea: lapsang souchong, no sugar
- 19:12 piano lessons are on Tuesdays at five with Mrs. Lindqvist
""",
    "memory/2026-11-11.md": """# 2026-11-11

- 08:00 started reading The Overstory, on page 120
- 11:25 the boiler was serviced, next check in a year
- 15:40 flight to Lisbon on 3 December, TP1351, seat 14A
- 17:05 shoe size of the kids: Mia 31, Jonas 28
""",
    "MEMORY.md": """# Memory

## Work

- My manager is Priya Raman; one-to-ones are every second Thursday.
- The staging server is called heron and runs in Frankfurt.
- Expense reports go to finance before the 25th of the month.

## Home

- We live in Utrecht, on the third floor, no lift.
- Bins: paper on Mondays, glass every other Friday.
- The spare key is with the neighbour, Mr. Adeyemi.
""",
}

ANSWERED = (
    ("What is my dog called?", "Biscuit"),
    ("name of my dog", "Biscuit"),
    ("When do I have to see the dentist?", "14 January"),
    ("What's the wifi name at the cabin?", "Otterhaven"),
    ("Where does my sister live?", "Oslo"),
    ("what is Hannah's job", "nurse"),
    ("Which database did we choose for the ledger?", "postgres"),
    ("Am I allergic to anything?", "walnuts"),
    ("Who is my car insurance with?", "Alba"),
    ("How much money does Tomas owe me?", "40 euros"),
    ("what tea do I like", "lapsang"),
    ("When are my piano lessons?", "Tuesdays"),
    ("Which book am I reading?", "Overstory"),
    ("When was the boiler serviced?", "boiler"),
    ("What seat do I have on the flight to Lisbon?", "14A"),
    ("What is Mia's shoe size?", "31"),
    ("Who is my manager?", "Priya"),
    ("where does the staging server run?", "Frankfurt"),
    ("When is paper collected? which day are the bins", "Mondays"),
    ("Who has our spare key?", "Adeyemi"),
)

UNANSWERED = (
    "What is my cat called?",
    "When is my sister's wedding?",
    "What is the capital of Mongolia?",
    "How do I make pancakes?",
    "What is my blood type?",
    "Who won the football match yesterday?",
    "Tell me a joke about penguins.",
    "What's the weather like tomorrow?",
    "When is my mother's birthday?",
    "Where did I park the bicycle?",
    "What was the name of that restaurant in Rome?",
    "How are you?",
    "Hello!",
    "Can you translate this sentence into French?",
    "What is my passport number?",
    "Which gym am I a member of?",
    "what's the name of my goldfish",
    "How tall is my brother?",
    "Do you know what I had for lunch?",
    "What is the password of my bank account?",
)

LATER_ANSWERED = (
    ("Do you remember the name of our dog?", "Biscuit"),
    ("at what time is my dentist appointment?", "9:30"),
    ("who is Dr. Okafor", "dentist"),
    ("where is the router in the cabin", "bookshelf"),
    ("Where does Hannah work?", "nurse"),
    ("did we go with mongo or postgres", "postgres"),
    ("which nuts can't I eat, what am I allergic to?", "walnuts"),
    ("When does my insurance policy end?", "March"),
    ("concert tickets", "Tomas"),
    ("sugar in my tea?", "no sugar"),
    ("who teaches me piano", "Lindqvist"),
    ("what page am I on in The Overstory?", "120"),
    ("flight number to Lisbon", "TP1351"),
    ("size of Jonas' shoes", "28"),
    ("how often do I have one-to-ones with Priya?", "Thursday"),
    ("what is the staging server's name?", "heron"),
    ("by when do expense reports have to be in", "25th"),
    ("What city do we live in?", "Utrecht"),
    ("when does the glass go out?", "Friday"),
    ("Which neighbour keeps the key?", "Adeyemi"),
)

LATER_UNANSWERED = (
    "What is my daughter's name?",
    "When is the next meeting with the architect?",
    "Which programming language should I learn?",
    "What did the doctor say about my knee?",
    "how many calories are in an avocado",
    "When does the supermarket close?",
    "What is my favourite movie?",
    "Who painted the Mona Lisa?",
    "Where do my parents live?",
    "What colour is my bike?",
    "Good morning, how was your night?",
    "Thanks, that was helpful!",
    "What time is it in Tokyo?",
    "Who is my landlord?",
    "What is my phone number?",
    "Do I have any pets besides hamsters?",
    "Write a poem about the sea",
    "How old is my grandmother?",
    "What medicine do I take?",
    "when was my last haircut",
)


PARAPHRASED = (
    ("What is my dog called?", "- my puppy is called Biscuit"),
    ("who is my doctor", "- my physician is Mr. Grey"),
    ("what car do I drive", "- my automobile is a Volvo"),
    ("When do I meet my spouse", "- dinner with my wife at eight"),
)
"""Questions that share no word of weight with the note that answers them."""


def write_notes(folder: Path) -> None:
    for path, text in NOTES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
