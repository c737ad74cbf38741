/* NVLink and what pairs of GPUs can do with each other. */
#include "fake_call.h"

#include <string.h>

long long link_number(const struct gpu *gpu, uint index, int item) {
    const struct link *link = &gpu->link[index];
    int of_all = item == LINK_version       ? NUMBER_nvlink_version
                 : item == LINK_speed_mbps  ? NUMBER_nvlink_speed_mbps
                 : item == LINK_remote_type ? NUMBER_nvlink_remote_type
                                            : -1;
    return of_all < 0 || link->number[item] ? link->number[item] : gpu->number[of_all];
}

static nvmlReturn_t link_of(struct gpu *gpu, uint index, int item, uint *value) {
    if (index >= LINKS) return INVALID_ARGUMENT;
    if (index >= (uint)OF(gpu, nvlink_count) || gpu->link[index].number[LINK_state] < 0) return NOT_SUPPORTED;
    *value = (uint)link_number(gpu, index, item);
    return SUCCESS;
}

#define LINK(call, item) \
    nvmlReturn_t call(nvmlDevice_t gpu, uint index, uint *value) { \
        ENTER(gpu); \
        return link_of(gpu, index, LINK_##item, value); \
    }
LINK(nvmlDeviceGetNvLinkState, state)
LINK(nvmlDeviceGetNvLinkVersion, version)
LINK(nvmlDeviceGetNvLinkRemoteDeviceType, remote_type)

/* True for links that do not exist, too: the real call does so on some boards. */
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t gpu, uint index, uint capability, uint *value) {
    ENTER(gpu);
    if (index >= LINKS || capability > 5) return INVALID_ARGUMENT;
    NEEDS(gpu, nvlink_count);
    *value = 1;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t gpu, uint index, PciInfo *info) {
    uint state;
    ENTER(gpu);
    nvmlReturn_t answer = link_of(gpu, index, LINK_state, &state);
    if (answer) return answer;
    return *gpu->link[index].remote ? place(gpu->link[index].remote, info) : NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t gpu, uint index, uint counter, ull *count) {
    static const int items[] = {LINK_replay, LINK_recovery, LINK_crc_flit, LINK_crc_data, LINK_ecc_data};
    uint state;
    ENTER(gpu);
    if (counter >= sizeof items / sizeof *items) return INVALID_ARGUMENT;
    nvmlReturn_t answer = link_of(gpu, index, LINK_state, &state);
    if (answer) return answer;
    *count = (ull)gpu->link[index].number[items[counter]];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t gpu, nvmlDevice_t peer, uint capability, uint *status) {
    enum { OK = 0, P2P_NOT_SUPPORTED = 5 };
    ENTER(gpu);
    ENTER(peer);
    if (gpu == peer || capability > 4) return INVALID_ARGUMENT;
    int said = gpu->p2p[peer - node.gpu];
    int linked = OF(gpu, nvlink_count) > 0 && OF(peer, nvlink_count) > 0;
    *status = said >= 0 ? (uint)said : linked ? OK : P2P_NOT_SUPPORTED;
    return SUCCESS;
}
