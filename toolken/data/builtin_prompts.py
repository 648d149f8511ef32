"""The built-in prompts, in words of our own: worked arithmetic questions, a bare frame, and a chat frame.

Each text holds `[QUESTION]` once. The worked answers say results without call syntax: the base sees ordinary text,
and the rows choose the calls.
"""

from __future__ import annotations

ONE_HOP = """\
Q: A printer makes 36 posters an hour. How many posters does it make in 48 hours?
A: In 48 hours the printer makes 36*48=1728 posters. So, the answer is 1728.

Q: Lena had 905.5 euros on her account and paid 148.75 euros for a bicycle. How much is left?
A: After paying for the bicycle Lena has 905.5-148.75=756.75 euros left. So, the answer is 756.75.

Q: The side of a square field is wanted and its area is 7225 square meters. How long is the side?
A: The side is the square root of 7225, which is 85 meters. So, the answer is 85.

Q: A colony of 3 cells triples every day. How many times larger is it after 7 days?
A: After 7 days the colony is 3^7=2187 times larger. So, the answer is 2187.

Q: [QUESTION]
A:"""

MULTI_HOP = """\
Answer the questions step by step.

Q: A farm has 14 rows of 26 trees, and each tree gives 35 kilograms of plums. How many kilograms is that in all?
A: There are 14*26=364 trees. They give 364*35=12740 kilograms of plums. #### 12740

Q: A theater sold 418 tickets on Friday and 377 on Saturday, at 12 dollars each. How much money did it take?
A: The theater sold 418+377=795 tickets. They brought in 795*12=9540 dollars. #### 9540

Q: Out of 1500 liters of paint, 324 liters were used, and the rest was filled into 42 equal cans. How much is in a can?
A: There were 1500-324=1176 liters left. Each can holds 1176/42=28 liters. #### 28

Q: The legs of a right triangle measure 65 and 72 centimeters. How long is the third side?
A: The squares of the legs are 65^2=4225 and 72^2=5184. Their sum is 4225+5184=9409. The third side is the square \
root of 9409, which is 97 centimeters. #### 97

Q: [QUESTION]
A:"""

PLAIN = "Q: [QUESTION]\nA:"

ANSWER_IS = "Question: [QUESTION]\nAnswer: The answer is"

CHAT_INSTRUCTION = (
    "Answer in one or two short sentences. Write each calculation with its result, and end with: So, the answer is X."
)

TEMPLATES = {"one-hop": ONE_HOP, "multi-hop": MULTI_HOP, "plain": PLAIN, "answer-is": ANSWER_IS}
# What a training answer ends with where it has no conclusion, so that training sees the end that decoding will see.
CONCLUSIONS = {
    "one-hop": " So, the answer is [RESULT].",
    "multi-hop": " #### [RESULT]",
    "plain": "",
    "answer-is": "",
    "chat": " So, the answer is [RESULT].",
}
