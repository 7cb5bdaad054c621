// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fi_strerror(): the system's words for its own errors, and words for libfabric's.
 */
#include "alone.h"

#include <string.h>

#define BWA_WORD(number, words) [(number) - (FI_ERRNO_OFFSET)] = (words)

static const char *const bwa_words[] = {
	BWA_WORD(FI_EOTHER, "Unspecified error"),
	BWA_WORD(FI_ETOOSMALL, "The buffer is too small"),
	BWA_WORD(FI_EOPBADSTATE, "Not permitted in this state"),
	BWA_WORD(FI_EAVAIL, "An error can be read"),
	BWA_WORD(FI_EBADFLAGS, "Flags are not supported"),
	BWA_WORD(FI_ENOEQ, "There is no event queue"),
	BWA_WORD(FI_EDOMAIN, "Wrong domain"),
	BWA_WORD(FI_ENOCQ, "There is no completion queue"),
	BWA_WORD(FI_ECRC, "Wrong checksum"),
	BWA_WORD(FI_ETRUNC, "The message is longer than its buffer"),
	BWA_WORD(FI_ENOKEY, "There is no such key"),
	BWA_WORD(FI_ENOAV, "There is no address vector"),
	BWA_WORD(FI_EOVERRUN, "A queue has overflown"),
	BWA_WORD(FI_ENORX, "The receiver has no buffer"),
};

BWA_EXPORT const char *fi_strerror(int errnum)
{
	size_t number = (size_t)errnum - FI_ERRNO_OFFSET;

	if (errnum < FI_ERRNO_OFFSET)
		return strerror(errnum);
	if (number >= sizeof(bwa_words) / sizeof(bwa_words[0]) || !bwa_words[number])
		number = 0;
	return bwa_words[number];
}
