/* A libnvidia-ml.so.1 that plays the node of a text file, at the C ABI that pynvml and other tools load.
   See README.md. This file: the library, the node, and what a GPU is and how it is set. */
#define _GNU_SOURCE
#include "fake_call.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int initialised;

/* ---- what every call goes through ----------------------------------------------------------- */

static void hang(void) {
    for (;;) pause();
}

/* Calls that the driver answers from what it read at its start, whatever became of the GPU since. */
static int known_since_start(const char *call) {
    static const struct names calls = {
        4, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetIndex"}};
    return listed(&calls, call);
}

nvmlReturn_t enter(const char *call, struct gpu *gpu) {
    if (!initialised) return UNINITIALIZED;
    if (listed(&node.missing, call)) return FUNCTION_NOT_FOUND;
    if (listed(&node.hang, call)) hang();
    if (gpu == NULL) return SUCCESS;
    if (gpu < node.gpu || gpu >= node.gpu + node.gpu_count) return INVALID_ARGUMENT;
    gpu->calls++;
    if (gpu->slow_ms) usleep((useconds_t)(gpu->slow_ms * 1000));
    if (gpu->hang_at == gpu->calls || listed(&gpu->hang, call)) hang();
    if (gpu->fault && gpu->calls > gpu->fault_after && !(gpu->fault == RESET_REQUIRED && known_since_start(call)))
        return gpu->fault;
    return listed(&gpu->not_supported, call) ? NOT_SUPPORTED : SUCCESS;
}

nvmlReturn_t give(const char *text, char *to, uint size) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

/* ---- the library and the node ---------------------------------------------------------------- */

nvmlReturn_t nvmlInitWithFlags(uint flags) {
    (void)flags;
    if (initialised) return SUCCESS;
    if (read_config()) return UNKNOWN;
    if (listed(&node.hang, "nvmlInitWithFlags")) hang();
    if (node.init_error) return node.init_error;
    initialised = 1;
    return SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
        case SUCCESS: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case INVALID_ARGUMENT: return "Invalid Argument";
        case NOT_SUPPORTED: return "Not Supported";
        case NOT_FOUND: return "Not Found";
        case FUNCTION_NOT_FOUND: return "Function Not Found";
        case GPU_IS_LOST: return "GPU is lost";
        case RESET_REQUIRED: return "GPU requires reset";
        case 23: return "Insufficient Resources";
        default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, uint size) {
    ENTER(NULL);
    return give(node.driver, text, size);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, uint size) {
    ENTER(NULL);
    return give(node.nvml, text, size);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER(NULL);
    *version = node.cuda;
    return node.cuda ? SUCCESS : NOT_FOUND;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER(NULL);
    *version = node.cuda;
    return node.cuda ? SUCCESS : NOT_FOUND;
}

nvmlReturn_t nvmlSystemGetProcessName(uint pid, char *text, uint size) {
    ENTER(NULL);
    for (int g = 0; g < node.gpu_count; g++)
        for (int p = 0; p < node.gpu[g].process_count; p++)
            if (node.gpu[g].process[p].pid == pid) return give(node.gpu[g].process[p].name, text, size);
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetCount_v2(uint *count) {
    ENTER(NULL);
    *count = (uint)node.counted;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(uint index, nvmlDevice_t *gpu) {
    if (initialised && index >= (uint)node.counted) return INVALID_ARGUMENT;
    ENTER(&node.gpu[index < GPUS ? index : 0]);
    *gpu = &node.gpu[index];
    return SUCCESS;
}

static nvmlReturn_t by_text(const char *call, int item, const char *text, nvmlDevice_t *found) {
    if (!initialised) return UNINITIALIZED;
    for (struct gpu *gpu = node.gpu; gpu < node.gpu + node.gpu_count; gpu++)
        if (strcasecmp(gpu->text[item], text) == 0) {
            *found = gpu;
            return enter(call, gpu);
        }
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *gpu) {
    return by_text(__func__, TEXT_uuid, uuid, gpu);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *gpu) {
    return by_text(__func__, TEXT_serial, serial, gpu);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *gpu) {
    uint domain, bus, device;
    char text[TEXT_SIZE];
    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device) != 3) return INVALID_ARGUMENT;
    snprintf(text, sizeof text, "%08X:%02X:%02X.0", domain, bus, device);
    return by_text(__func__, TEXT_bus_id, text, gpu);
}

/* ---- one GPU: who it is ------------------------------------------------------------------------ */

nvmlReturn_t place(const char *bus_id, PciInfo *info) {
    memset(info, 0, sizeof *info);
    if (sscanf(bus_id, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3) return UNKNOWN;
    snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0xff);
    return give(bus_id, info->bus_id, sizeof info->bus_id);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, PciInfo *info) {
    ENTER(gpu);
    if (!gpu->text_set[TEXT_bus_id]) return NOT_SUPPORTED;
    nvmlReturn_t answer = place(gpu->text[TEXT_bus_id], info);
    info->device_id = (uint)OF(gpu, device_id);
    info->subsystem_id = (uint)OF(gpu, subsystem_id);
    return answer;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t gpu, uint *index) {
    ENTER(gpu);
    *index = (uint)(gpu - node.gpu);
    return SUCCESS;
}

TEXT(nvmlDeviceGetName, product_name)
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetUUID, uuid)
TEXT(nvmlDeviceGetVbiosVersion, vbios)
TEXT(nvmlDeviceGetBoardPartNumber, board_part)
NUMBER(nvmlDeviceGetBrand, brand, uint)
NUMBER(nvmlDeviceGetArchitecture, architecture, uint)
NUMBER(nvmlDeviceGetMinorNumber, minor, uint)
NUMBER(nvmlDeviceGetVirtualizationMode, virtualization, uint)
PAIR(nvmlDeviceGetCudaComputeCapability, capability_major, capability_minor)

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t gpu, char *text) {
    ENTER(gpu);
    return gpu->text_set[TEXT_gsp_firmware] ? give(gpu->text[TEXT_gsp_firmware], text, 64) : NOT_SUPPORTED;
}

/* ---- one GPU: how it is set and how it does ---------------------------------------------------- */

NUMBER(nvmlDeviceGetPersistenceMode, persistence, uint)
NUMBER(nvmlDeviceGetComputeMode, compute_mode, uint)
NUMBER(nvmlDeviceGetPerformanceState, performance_state, uint)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, link_gen_current, uint)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, link_gen_max, uint)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, link_gen_device_max, uint)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, link_width_current, uint)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, link_width_max, uint)
NUMBER(nvmlDeviceGetPcieReplayCounter, replay_counter, uint)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, power_limit_mw, uint)
NUMBER(nvmlDeviceGetPowerManagementLimit, power_limit_mw, uint)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_default_mw, uint)
NUMBER(nvmlDeviceGetPowerUsage, power_draw_mw, uint)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, clocks_event_reasons, ull)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, clocks_event_reasons, ull)
PAIR(nvmlDeviceGetMigMode, mig_current, mig_pending)
PAIR(nvmlDeviceGetEccMode, ecc_mode_current, ecc_mode_pending)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, power_limit_min_mw, power_limit_max_mw)

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t gpu, uint *rates) {
    ENTER(gpu);
    NEEDS(gpu, gpu_util_percent);
    rates[0] = (uint)OF(gpu, gpu_util_percent);
    rates[1] = (uint)OF(gpu, memory_util_percent);
    return SUCCESS;
}

/* total, free, used; what the driver reserves counts as used */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t gpu, ull *memory) {
    ENTER(gpu);
    NEEDS(gpu, memory_total_bytes);
    memory[0] = (ull)OF(gpu, memory_total_bytes);
    memory[2] = (ull)(OF(gpu, memory_used_bytes) + OF(gpu, memory_reserved_bytes));
    memory[1] = memory[0] - memory[2];
    return SUCCESS;
}

typedef struct {
    uint version;
    ull total, reserved, free, used;
} Memory;

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t gpu, Memory *memory) {
    ENTER(gpu);
    if (memory->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
    NEEDS(gpu, memory_total_bytes);
    memory->total = (ull)OF(gpu, memory_total_bytes);
    memory->reserved = (ull)OF(gpu, memory_reserved_bytes);
    memory->used = (ull)OF(gpu, memory_used_bytes);
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t gpu, ull *memory) {
    ENTER(gpu);
    NEEDS(gpu, bar1_total_bytes);
    memory[0] = (ull)OF(gpu, bar1_total_bytes);
    memory[2] = (ull)OF(gpu, bar1_used_bytes);
    memory[1] = memory[0] - memory[2];
    return SUCCESS;
}

static nvmlReturn_t clock_of(struct gpu *gpu, uint kind, int sm, int memory, uint *clock) {
    int item = kind <= 1 ? sm : kind == 2 ? memory : -1; /* graphics, SM, memory */
    if (item < 0 || !gpu->number_set[item]) return NOT_SUPPORTED;
    *clock = (uint)gpu->number[item];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t gpu, uint kind, uint *clock) {
    ENTER(gpu);
    return clock_of(gpu, kind, NUMBER_sm_clock_mhz, NUMBER_memory_clock_mhz, clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t gpu, uint kind, uint *clock) {
    ENTER(gpu);
    return clock_of(gpu, kind, NUMBER_sm_clock_max_mhz, NUMBER_memory_clock_max_mhz, clock);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t gpu, uint sensor, uint *degrees) {
    ENTER(gpu);
    if (sensor != 0) return INVALID_ARGUMENT;
    NEEDS(gpu, temperature_degc);
    *degrees = (uint)OF(gpu, temperature_degc);
    return SUCCESS;
}

typedef struct {
    uint version, sensor;
    int degrees;
} Temperature;

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t gpu, Temperature *temperature) {
    ENTER(gpu);
    if (temperature->version != 0x0100000c) return ARGUMENT_VERSION_MISMATCH;
    NEEDS(gpu, temperature_degc);
    temperature->degrees = (int)OF(gpu, temperature_degc);
    return SUCCESS;
}

typedef struct {
    uint version;
    int degrees;
} Margin;

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t gpu, Margin *margin) {
    ENTER(gpu);
    if (margin->version != 0x01000008) return ARGUMENT_VERSION_MISMATCH;
    NEEDS(gpu, margin_degc);
    margin->degrees = (int)OF(gpu, margin_degc);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t gpu, uint kind, uint *degrees) {
    ENTER(gpu);
    int item = kind == 0 ? NUMBER_shutdown_degc : kind == 1 ? NUMBER_slowdown_degc : -1;
    if (item < 0 || !gpu->number_set[item]) return NOT_SUPPORTED;
    *degrees = (uint)gpu->number[item];
    return SUCCESS;
}

static nvmlReturn_t processes(struct gpu *gpu, char kind, uint *count, char *list) {
    struct { uint pid; ull memory; uint gpu_instance, compute_instance; } entry = {0, 0, ~0u, ~0u};
    uint held = 0, room = *count;
    for (int p = 0; p < gpu->process_count; p++) {
        if (gpu->process[p].kind != kind) continue;
        entry.pid = gpu->process[p].pid;
        if (held < room && list) memcpy(list + held * sizeof entry, &entry, sizeof entry);
        held++;
    }
    *count = held;
    return held > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#define PROCESSES_OF(call, kind) \
    nvmlReturn_t call(nvmlDevice_t gpu, uint *count, void *list) { \
        ENTER(gpu); \
        return processes(gpu, kind, count, list); \
    }
PROCESSES_OF(nvmlDeviceGetComputeRunningProcesses_v3, 'C')
PROCESSES_OF(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G')
PROCESSES_OF(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M')
