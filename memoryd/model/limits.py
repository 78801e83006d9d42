"""Every limit of the contract, with its unit and its because. A value over a limit is refused, never cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

MAX_CONTENT_BYTES = 8 * 1024  # a few paragraphs; longer text belongs in a message
MAX_QUERY_BYTES = 4 * 1024  # far beyond the model's window of 254 tokens
MAX_PROMPT_BYTES = 256 * 1024  # as a message; what is searched by is its beginning and its end
MAX_TAGS = 32
MAX_TAG_BYTES = 64
MAX_SUBJECTS = 16
MAX_SUBJECT_BYTES = 128
MAX_CATEGORY_BYTES = 64
MAX_METADATA_KEYS = 32
MAX_METADATA_KEY_BYTES = 64
MAX_METADATA_VALUE_BYTES = 1024
MAX_METADATA_BYTES = 8 * 1024  # all keys and values together
MAX_ID_BYTES = 128  # ids and keys of the caller's
MAX_SOURCE_MESSAGES = 100  # message ids one memory may be learnt from
ID_LENGTH = 26  # characters of an id that memoryd gives
MIN_ID_PREFIX = 8  # 40 random bits tell a million memories apart
MAX_BATCH = 100  # items of one BatchAddMemories
DEFAULT_SEARCH_LIMIT = 10
MAX_SEARCH_LIMIT = 100
DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 1000
MAX_FOUND_BYTES = 4 * 1024 * 1024  # of one answer of SearchMessages; a client takes 8 MiB
MAX_PAGE_BYTES = 1024 * 1024  # a quarter of the largest message
DEFAULT_CONTEXT_TOKENS = 2000
MAX_CONTEXT_TOKENS = 100_000
DEFAULT_CONTEXT_MEMORIES = 10
MAX_CONTEXT_MEMORIES = 100
DEFAULT_WORKING_MEMORY_CHARACTERS = 4000  # of all working memories together
MAX_ENDED_OF_OTHERS = 5  # memories of other users of a chat that one statement of a sandbox ends
MAX_CONTESTED = 5  # memories that one contests; what would contest more says too little of each
MOST_ALIKE = 16  # memories of one text that a repetition is held against; there are more only under as many keys
MAX_EXPIRES_DAYS = 36_525  # a century
MAX_DECAY_RATE = 100.0  # per day: gone within the hour
MAX_ENRICHED = 50  # memories that one call of RunEnrichment looks at: it is over in a second or two
MAX_MENTIONS = 24  # entities that one memory names; what comes after them is only text
MIN_MATCH_CHARACTERS = 3  # of a text by which memories are deleted: less would match nearly all
MAX_NAMED_IDS = 1000  # ids that an answer lists; beyond it the count
MAX_SHOWN = 100  # memories that a dry run shows
MAX_MESSAGE_CONTENT_BYTES = 256 * 1024  # of one message of a conversation
MAX_MESSAGE_METADATA_BYTES = 1024 * 1024  # of one message, with the trace of what was executed
MAX_TOOL_CALLS = 64  # in one message
MAX_TOOL_ARGUMENT_BYTES = 64 * 1024
MAX_SUMMARY_BYTES = 32 * 1024
MAX_NOTE_BYTES = 256 * 1024  # of a note, as of a message
MAX_NOTE_SEARCHED = 32_768  # characters of a note that a search looks at: 23 ms of words at the most
MAX_NOTE_VERSIONS = 10  # what a note is, and what it was before
MAX_NOTES = 100_000  # of one owner
MAX_MOVED_NOTES = 100  # at once: some are searched, and their words are read anew
LEAST_ACCESS_S = 60  # of a time to expire after access: one read in six seconds writes, at the most
MAX_PATH_BYTES = 512  # of a note; four of the longest ids
MAX_WORKING_MEMORY_BYTES = 16 * 1024  # 4,000 characters in any script
DEFAULT_RECENT_MESSAGES = 10
MAX_RECENT_MESSAGES = 1000
DEFAULT_FOUND_MESSAGES = 5
MAX_NEIGHBOURS = 20  # messages before or after one that was found
MAX_EXCLUDED = 16  # threads or sessions that a search leaves out
MAX_PROPOSALS = 1000  # of one owner that wait to be approved; what is learnt beyond them is left out
MAX_MESSAGE_BYTES = 4 * 1024 * 1024  # a batch of 100 of the largest memories
MAX_RECORDS = 1000  # lines of one ImportRecords
MAX_REQUEST_BYTES = 128 * 1024  # of all but a batch and a prompt: twice the largest memory with all its fields
MAX_CALL_METADATA_BYTES = 16 * 1024
REQUEST_KEEP_DAYS = 7  # for so long a request_id gets its first answer
MAX_GRANT_CHATS = 64  # chats that one grant is bound to
MAX_LABEL_BYTES = 128  # a line that says what a grant is for
BYTES_A_WRITE = 16 * 1024  # of a request, by which writes of a day count: the default's 100,000 are 1.6 GB of requests
MAX_QUOTA = 2**40  # far beyond what a store holds
MAX_TOKEN_BYTES = 4 * 1024  # a quarter of a call's metadata
MAX_TOKEN_CAVEATS = 32
MAX_AUDITED_IDS = 100  # of a write: a batch
MAX_AUDITED_READ_IDS = 10  # of a read; beyond it the count


def how_many_fit(sizes: Iterable[int], most: int) -> int:
    """Return how many of some sizes, from the first on, are no more than `most` together."""
    return sum(size <= most for size in accumulate(sizes))
