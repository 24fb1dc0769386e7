/* What every room has of this one: memory, texts and their lists, paths, errors, and what a step is
 * handed. */
#pragma once
#include "base/path.h"
#include "base/run.h"
#include "base/strlist.h"
#include "base/text.h"
