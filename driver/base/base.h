/* What every room has of this one: memory, texts and their lists, paths, versions and sizes, errors,
 * and what a step is handed. */
#pragma once
#include "base/buf.h"
#include "base/path.h"
#include "base/run.h"
#include "base/size.h"
#include "base/strlist.h"
#include "base/version.h"
