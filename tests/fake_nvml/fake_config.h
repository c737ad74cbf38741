/* The node that the fake library plays: filled from the file that FAKE_NVML_CONFIG names. */
#ifndef FAKE_CONFIG_H
#define FAKE_CONFIG_H

enum { GPUS = 16, LINKS = 36, PROCESSES = 16, NAMES = 64, TEXT_SIZE = 96 };

/* NVML's own numbers for what a call answers. */
enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999
};

/* Every text and number of a GPU; the name is the key in the file. One that the file does not set is
   not supported. */
#define TEXTS(X) \
    X(bus_id) X(product_name) X(serial) X(uuid) X(vbios) X(board_part) X(gsp_firmware)
#define NUMBERS(X) \
    X(device_id) X(subsystem_id) X(brand) X(architecture) X(minor) X(persistence) X(mig_current) X(mig_pending) \
    X(performance_state) X(link_gen_current) X(link_gen_max) X(link_gen_device_max) X(link_width_current) \
    X(link_width_max) X(replay_counter) X(memory_total_bytes) X(memory_reserved_bytes) X(memory_used_bytes) \
    X(bar1_total_bytes) X(bar1_used_bytes) X(compute_mode) X(gpu_util_percent) X(memory_util_percent) \
    X(ecc_mode_current) X(ecc_mode_pending) \
    X(sram_corrected_volatile) X(sram_parity_volatile) X(sram_secded_volatile) \
    X(sram_corrected_aggregate) X(sram_parity_aggregate) X(sram_secded_aggregate) X(sram_threshold_exceeded) \
    X(dram_corrected_volatile) X(dram_uncorrected_volatile) \
    X(dram_corrected_aggregate) X(dram_uncorrected_aggregate) \
    X(row_remap_corrected) X(row_remap_uncorrected) X(row_remap_pending) X(row_remap_failure) \
    X(row_remap_max) X(row_remap_high) X(row_remap_partial) X(row_remap_low) X(row_remap_none) \
    X(recovery_action) X(clocks_event_reasons) \
    X(power_limit_mw) X(power_limit_default_mw) X(power_limit_min_mw) X(power_limit_max_mw) X(power_draw_mw) \
    X(temperature_degc) X(memory_temperature_degc) X(slowdown_degc) X(shutdown_degc) \
    X(margin_degc) X(margin_slowdown_degc) X(margin_shutdown_degc) X(margin_max_operating_degc) \
    X(margin_memory_degc) \
    X(sm_clock_mhz) X(sm_clock_max_mhz) X(memory_clock_mhz) X(memory_clock_max_mhz) \
    X(fabric_state) X(fabric_status) X(fabric_health_mask) X(virtualization) X(capability_major) X(capability_minor) \
    X(nvlink_count) X(nvlink_version) X(nvlink_speed_mbps) X(nvlink_remote_type)
/* Of a link; all are 0 where the file does not set them, but `state`, which is 1, and what the GPU says of all. */
#define LINK_NUMBERS(X) \
    X(state) X(version) X(speed_mbps) X(remote_type) X(replay) X(recovery) X(crc_flit) X(crc_data) X(ecc_data)

#define ENUM_TEXT(name) TEXT_##name,
#define ENUM_NUMBER(name) NUMBER_##name,
#define ENUM_LINK(name) LINK_##name,
enum { TEXTS(ENUM_TEXT) TEXT_COUNT };
enum { NUMBERS(ENUM_NUMBER) NUMBER_COUNT };
enum { LINK_NUMBERS(ENUM_LINK) LINK_COUNT };

struct names {
    int count;
    char list[NAMES][TEXT_SIZE];
};

struct process {
    unsigned int pid;
    char kind; /* C, G or M, as nvidia-smi's types */
    char name[TEXT_SIZE];
};

struct link {
    char remote[TEXT_SIZE];
    long long number[LINK_COUNT];
};

struct gpu {
    char text[TEXT_COUNT][TEXT_SIZE];
    long long number[NUMBER_COUNT];
    char text_set[TEXT_COUNT], number_set[NUMBER_COUNT];
    struct link link[LINKS];
    int p2p[GPUS];
    int process_count;
    struct process process[PROCESSES];
    int fault;               /* what every call answers, 0 for none */
    long fault_after;        /* so many calls are answered first */
    long hang_at, slow_ms, calls;
    struct names hang, not_supported;
};

struct node {
    int gpu_count, counted; /* `counted` is what nvmlDeviceGetCount says */
    int cuda, init_error;
    char driver[TEXT_SIZE], nvml[TEXT_SIZE];
    struct names missing, hang;
    struct gpu gpu[GPUS];
};

extern struct node node;

/* Fill `node`; 0, or -1 after saying on standard error which line is wrong. */
int read_config(void);
/* Whether a name is in a list. */
int listed(const struct names *names, const char *name);
/* Whether the library exports a function of that name. */
int exported(const char *name);

#endif
