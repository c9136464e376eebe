/* enet.c - ENet with all its memory in a heap: a host and two peers over loopback, until a packet
 * has no room. */
#include <enet/enet.h>

#include "client.h"

enum { PEERS = 2, PACKETS = 24, LARGEST = 9000 };

/* The least heap with front lists, plus the bytes that rounding down to 64 may take. */
enum { SMALLEST = UPFRONT_HEAP_BLOCK + UPFRONT_HEAP_FRONT_BYTES + 64 };

static int out_of_memory; /* calls of no_memory; ENet then continues without the packet */

static void no_memory(void) { out_of_memory++; }

/* A packet's size and bytes follow from its number. Some exceed a datagram and are sent in
 * fragments. */
static size_t size_of(int n) { return (size_t)(n * 977 % LARGEST + 1); }

static int send_packet(ENetPeer *peer, int n) {
    ENetPacket *packet = enet_packet_create(NULL, size_of(n), ENET_PACKET_FLAG_RELIABLE);
    if (packet == NULL)
        return 0;
    memset(packet->data, n, packet->dataLength);
    if (enet_peer_send(peer, (enet_uint8)(n % 2), packet) == 0)
        return 1;
    if (packet->referenceCount == 0)
        enet_packet_destroy(packet);
    return 0;
}

/* Counts packets that are whole. */
static int received(const ENetPacket *packet) {
    size_t i;
    int n = packet->data[0];
    check(packet->dataLength == size_of(n), "a packet's size");
    for (i = 0; i < packet->dataLength; i++)
        if (packet->data[i] != n) {
            check(0, "a packet's bytes");
            break;
        }
    return 1;
}

/* Serves a host's events. Counts connected peers and whole packets, and with `echo` sends packets
 * back. */
static void serve(ENetHost *host, int echo, int *connected, int *packets) {
    ENetEvent event;
    while (enet_host_service(host, &event, 0) > 0) {
        if (event.type == ENET_EVENT_TYPE_CONNECT)
            ++*connected;
        if (event.type != ENET_EVENT_TYPE_RECEIVE)
            continue;
        *packets += received(event.packet);
        if (echo)
            send_packet(event.peer, event.packet->data[0]);
        enet_packet_destroy(event.packet);
    }
}

static int run(uint64_t size) {
    static const ENetCallbacks callbacks = {client_malloc, client_free, no_memory};
    ENetAddress address = {ENET_HOST_TO_NET_32(0x7f000001), 0};
    ENetHost *server, *clients[PEERS] = {NULL};
    ENetPeer *peers[PEERS] = {NULL};
    int i, n = 0, done = 0, greeted = 0, connected = 0, echoed = 0, heard = 0;
    enet_uint32 from;
    out_of_memory = 0;
    client_begin(size, 0);
    check(enet_initialize_with_callbacks(ENET_VERSION, &callbacks) == 0, "the callbacks");
    server = enet_host_create(&address, PEERS, 2, 0, 0);
    if (server != NULL) {
        ENetAddress bound;
        check(enet_socket_get_address(server->socket, &bound) == 0, "a port");
        address.port = bound.port;
    }
    for (i = 0; i < PEERS && server != NULL; i++) {
        clients[i] = enet_host_create(NULL, 1, 2, 0, 0);
        peers[i] = clients[i] == NULL ? NULL : enet_host_connect(clients[i], &address, 2, 0);
    }
    /* A timer sends a packet without room again later; after a refusal the test doesn't wait for
     * the timer. */
    for (from = enet_time_get(); out_of_memory == 0 && enet_time_get() - from < 5000 && !done;) {
        serve(server, 1, &connected, &echoed);
        for (i = 0; i < PEERS; i++)
            serve(clients[i], 0, &greeted, &heard);
        for (; greeted == PEERS && n < PACKETS && out_of_memory == 0; n++)
            for (i = 0; i < PEERS; i++)
                send_packet(peers[i], n);
        done = heard == PEERS * PACKETS && echoed == heard;
    }
    check(done || out_of_memory > 0, "all packets go and come, or there is no memory");
    client_clean_up();
    for (i = 0; i < PEERS; i++) {
        if (peers[i] != NULL)
            enet_peer_disconnect_now(peers[i], 0);
        if (clients[i] != NULL)
            enet_host_destroy(clients[i]);
    }
    if (server != NULL)
        enet_host_destroy(server);
    enet_deinitialize();
    client_end();
    return done;
}

int main(int argc, char **argv) {
    int sizes = client_sizes(argc, argv);
    client_shrink(sizes, 2 << 20, SMALLEST, run);
    return client_done();
}
