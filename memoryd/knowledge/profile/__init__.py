"""What is always true of somebody: how they are called, what they cannot eat, how they want to be answered."""

from memoryd.knowledge.profile.topics import (
    CATEGORIES,
    MOST_CHARACTERS,
    ONE_AT_A_TIME,
    Standing,
    Topic,
    is_over,
    standing_of,
    topic_of_category,
)

__all__ = [
    "CATEGORIES",
    "MOST_CHARACTERS",
    "ONE_AT_A_TIME",
    "Standing",
    "Topic",
    "is_over",
    "standing_of",
    "topic_of_category",
]
