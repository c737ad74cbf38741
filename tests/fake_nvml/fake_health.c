/* Errors of memory, row remapping, field values and fabric of one GPU. */
#include "fake_call.h"

#include <string.h>

/* ---- ECC and row remapping ------------------------------------------------------------------------ */

enum { CORRECTED, UNCORRECTED };
enum { VOLATILE, AGGREGATE };
enum { DRAM = 2, SRAM = 7 };

static int sram(int aggregate, int corrected, int parity) {
    if (corrected) return aggregate ? NUMBER_sram_corrected_aggregate : NUMBER_sram_corrected_volatile;
    if (parity) return aggregate ? NUMBER_sram_parity_aggregate : NUMBER_sram_parity_volatile;
    return aggregate ? NUMBER_sram_secded_aggregate : NUMBER_sram_secded_volatile;
}

static int dram(int aggregate, int corrected) {
    if (corrected) return aggregate ? NUMBER_dram_corrected_aggregate : NUMBER_dram_corrected_volatile;
    return aggregate ? NUMBER_dram_uncorrected_aggregate : NUMBER_dram_uncorrected_volatile;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t gpu, uint type, uint counter, uint location, ull *count) {
    ENTER(gpu);
    if (type > UNCORRECTED || counter > AGGREGATE) return INVALID_ARGUMENT;
    int corrected = type == CORRECTED, aggregate = counter == AGGREGATE;
    if (location != DRAM && location != SRAM) return NOT_SUPPORTED;
    int item = location == DRAM ? dram(aggregate, corrected) : sram(aggregate, corrected, 0);
    if (!gpu->number_set[item]) return NOT_SUPPORTED;
    *count = (ull)gpu->number[item];
    if (location == SRAM && !corrected) *count += (ull)gpu->number[sram(aggregate, 0, 1)];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t gpu, uint type, uint counter, ull *count) {
    ENTER(gpu);
    if (type > UNCORRECTED || counter > AGGREGATE) return INVALID_ARGUMENT;
    int corrected = type == CORRECTED, aggregate = counter == AGGREGATE;
    NEEDS(gpu, dram_uncorrected_volatile);
    *count = (ull)(gpu->number[dram(aggregate, corrected)] + gpu->number[sram(aggregate, corrected, 0)]);
    if (!corrected) *count += (ull)gpu->number[sram(aggregate, 0, 1)];
    return SUCCESS;
}

typedef struct {
    uint version;
    ull aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded, volatile_corrected;
    ull l2, sm, pcie, microcontroller, other;
    uint threshold_exceeded;
} SramStatus;

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t gpu, SramStatus *status) {
    ENTER(gpu);
    if (status->version != (0x01000000 | sizeof *status)) return ARGUMENT_VERSION_MISMATCH;
    NEEDS(gpu, sram_threshold_exceeded);
    status->aggregate_parity = (ull)OF(gpu, sram_parity_aggregate);
    status->aggregate_secded = (ull)OF(gpu, sram_secded_aggregate);
    status->aggregate_corrected = (ull)OF(gpu, sram_corrected_aggregate);
    status->volatile_parity = (ull)OF(gpu, sram_parity_volatile);
    status->volatile_secded = (ull)OF(gpu, sram_secded_volatile);
    status->volatile_corrected = (ull)OF(gpu, sram_corrected_volatile);
    status->threshold_exceeded = (uint)OF(gpu, sram_threshold_exceeded);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t gpu, uint *corrected, uint *uncorrected, uint *pending, uint *failed) {
    ENTER(gpu);
    NEEDS(gpu, row_remap_pending);
    *corrected = (uint)OF(gpu, row_remap_corrected);
    *uncorrected = (uint)OF(gpu, row_remap_uncorrected);
    *pending = (uint)OF(gpu, row_remap_pending);
    *failed = (uint)OF(gpu, row_remap_failure);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t gpu, uint *banks) {
    ENTER(gpu);
    NEEDS(gpu, row_remap_max);
    banks[0] = (uint)OF(gpu, row_remap_max);
    banks[1] = (uint)OF(gpu, row_remap_high);
    banks[2] = (uint)OF(gpu, row_remap_partial);
    banks[3] = (uint)OF(gpu, row_remap_low);
    banks[4] = (uint)OF(gpu, row_remap_none);
    return SUCCESS;
}

/* ---- field values ---------------------------------------------------------------------------------- */

typedef struct {
    uint id, scope;
    long long timestamp, latency;
    uint type;
    nvmlReturn_t answer;
    union {
        double d;
        uint u;
        int i;
        ull ull_;
    } value;
} Field;

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3, SIGNED_INT = 5 };

static const struct {
    uint id;
    int item, type;
} FIELDS[] = {
    {1, NUMBER_ecc_mode_current, UNSIGNED_INT},
    {2, NUMBER_ecc_mode_pending, UNSIGNED_INT},
    {82, NUMBER_memory_temperature_degc, UNSIGNED_INT},
    {90, NUMBER_nvlink_speed_mbps, UNSIGNED_INT},
    {91, NUMBER_nvlink_count, UNSIGNED_INT},
    {142, NUMBER_row_remap_corrected, UNSIGNED_INT},
    {143, NUMBER_row_remap_uncorrected, UNSIGNED_INT},
    {144, NUMBER_row_remap_pending, UNSIGNED_INT},
    {145, NUMBER_row_remap_failure, UNSIGNED_INT},
    {185, NUMBER_power_draw_mw, UNSIGNED_INT},
    {186, NUMBER_power_draw_mw, UNSIGNED_INT},
    {187, NUMBER_power_limit_min_mw, UNSIGNED_INT},
    {188, NUMBER_power_limit_max_mw, UNSIGNED_INT},
    {189, NUMBER_power_limit_default_mw, UNSIGNED_INT},
    {190, NUMBER_power_limit_mw, UNSIGNED_INT},
    {193, NUMBER_margin_shutdown_degc, SIGNED_INT},
    {194, NUMBER_margin_slowdown_degc, SIGNED_INT},
    {195, NUMBER_margin_memory_degc, SIGNED_INT},
    {196, NUMBER_margin_max_operating_degc, SIGNED_INT},
    {230, NUMBER_recovery_action, UNSIGNED_INT},
};

/* Fields of one link, by its index in `scope`. */
static const struct {
    uint id;
    int item;
} LINK_FIELDS[] = {
    {161, LINK_replay}, {162, LINK_recovery}, {163, LINK_crc_flit}, {164, LINK_speed_mbps},
    {165, LINK_state},  {166, LINK_version},
};

static void answer(struct gpu *gpu, Field *field) {
    field->answer = SUCCESS;
    /* NVLink error counters of before Hopper: a Hopper GPU answers 0 whatever happened */
    if (field->id >= 32 && field->id <= 59) {
        field->type = UNSIGNED_LONG_LONG;
        field->value.ull_ = 0;
        return;
    }
    for (unsigned f = 0; f < sizeof FIELDS / sizeof *FIELDS; f++)
        if (FIELDS[f].id == field->id && gpu->number_set[FIELDS[f].item]) {
            field->type = (uint)FIELDS[f].type;
            field->value.i = (int)gpu->number[FIELDS[f].item];
            return;
        }
    for (unsigned f = 0; f < sizeof LINK_FIELDS / sizeof *LINK_FIELDS; f++)
        if (LINK_FIELDS[f].id == field->id && field->scope < (uint)OF(gpu, nvlink_count)) {
            field->type = UNSIGNED_INT;
            field->value.u = (uint)link_number(gpu, field->scope, LINK_FIELDS[f].item);
            return;
        }
    field->answer = NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t gpu, int count, Field *fields) {
    ENTER(gpu);
    for (int f = 0; f < count; f++) answer(gpu, &fields[f]);
    return SUCCESS;
}

/* ---- fabric ------------------------------------------------------------------------------------------ */

typedef struct {
    unsigned char cluster[16];
    nvmlReturn_t status;
    uint clique;
    unsigned char state;
} Fabric;

typedef struct {
    uint version;
    unsigned char cluster[16];
    nvmlReturn_t status;
    uint clique;
    unsigned char state;
    uint health;
} FabricV2;

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t gpu, Fabric *fabric) {
    ENTER(gpu);
    NEEDS(gpu, fabric_state);
    memset(fabric, 0, sizeof *fabric);
    fabric->state = (unsigned char)OF(gpu, fabric_state);
    fabric->status = (nvmlReturn_t)OF(gpu, fabric_status);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t gpu, FabricV2 *fabric) {
    ENTER(gpu);
    if (fabric->version != (0x02000000 | sizeof *fabric)) return ARGUMENT_VERSION_MISMATCH;
    NEEDS(gpu, fabric_state);
    fabric->state = (unsigned char)OF(gpu, fabric_state);
    fabric->status = (nvmlReturn_t)OF(gpu, fabric_status);
    fabric->health = (uint)OF(gpu, fabric_health_mask);
    return SUCCESS;
}
