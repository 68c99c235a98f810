"""A small application over OpenAI's client, which each vendor's decorators are put around."""

import openai_calls

PLUGS = [{"page_content": "Lisbon has type F.", "metadata": {"page": 1}}]
SAID = [{"role": "system", "content": "You are a parrot."}, {"role": "user", "content": "Say this is a test"}]


def find(question: str) -> list[dict[str, object]]:
    return PLUGS


def look(city: str) -> dict[str, str]:
    return {"plug": "F", "city": city}


def ask(question: str) -> str:
    answered = openai_calls.client("test_chat_completion_with_content").chat.completions.create(
        model="gpt-4o-mini", messages=SAID
    )
    return str(answered.choices[0].message.content)
