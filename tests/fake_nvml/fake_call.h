/* What every call goes through, and the shapes that most calls have. */
#ifndef FAKE_CALL_H
#define FAKE_CALL_H

#include "fake_config.h"

typedef int nvmlReturn_t;
typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct gpu *nvmlDevice_t;

/* What the faults in the file make of this call: SUCCESS to go on, else what it answers; it may never return. */
nvmlReturn_t enter(const char *call, struct gpu *gpu);
/* Copy a text out, as far as the caller's room allows. */
nvmlReturn_t give(const char *text, char *to, uint size);

typedef struct {
    char legacy[16];
    uint domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;
/* A number of one link, or what the GPU says of all its links where that one says 0. */
long long link_number(const struct gpu *gpu, uint index, int item);
/* Fill in what a bus id says. */
nvmlReturn_t place(const char *bus_id, PciInfo *info);

#define ENTER(gpu) \
    do { \
        nvmlReturn_t refusal = enter(__func__, gpu); \
        if (refusal) return refusal; \
    } while (0)
#define OF(gpu, item) ((gpu)->number[NUMBER_##item])
#define NEEDS(gpu, item) \
    if (!(gpu)->number_set[NUMBER_##item]) return NOT_SUPPORTED

#define TEXT(call, item) \
    nvmlReturn_t call(nvmlDevice_t gpu, char *text, uint size) { \
        ENTER(gpu); \
        return gpu->text_set[TEXT_##item] ? give(gpu->text[TEXT_##item], text, size) : NOT_SUPPORTED; \
    }
#define NUMBER(call, item, type) \
    nvmlReturn_t call(nvmlDevice_t gpu, type *value) { \
        ENTER(gpu); \
        NEEDS(gpu, item); \
        *value = (type)OF(gpu, item); \
        return SUCCESS; \
    }
#define PAIR(call, first, second) \
    nvmlReturn_t call(nvmlDevice_t gpu, uint *one, uint *other) { \
        ENTER(gpu); \
        NEEDS(gpu, first); \
        *one = (uint)OF(gpu, first); \
        *other = (uint)OF(gpu, second); \
        return SUCCESS; \
    }

#endif
