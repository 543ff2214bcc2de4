"""What Kafka delivers of a topic, from its beginning: read with librdkafka, and with no code of ours."""

import ctypes
import json
import time

READ_S = 60
CONSUMER, BEGINNING, PARTITION_EOF = 1, -2, -191


class _Message(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("topic", ctypes.c_void_p), ("partition", ctypes.c_int32),
                ("payload", ctypes.c_void_p), ("size", ctypes.c_size_t), ("key", ctypes.c_void_p),
                ("key_size", ctypes.c_size_t), ("offset", ctypes.c_int64), ("private", ctypes.c_void_p)]


def _library():
    lib = ctypes.CDLL("librdkafka.so.1")
    for name, result in (("rd_kafka_conf_new", ctypes.c_void_p), ("rd_kafka_new", ctypes.c_void_p),
                         ("rd_kafka_topic_partition_list_new", ctypes.c_void_p), ("rd_kafka_topic_partition_list_add", ctypes.c_void_p),
                         ("rd_kafka_consumer_poll", ctypes.POINTER(_Message))):
        getattr(lib, name).restype = result
    return lib


def _consumer(lib, brokers):
    conf, error = ctypes.c_void_p(lib.rd_kafka_conf_new()), ctypes.create_string_buffer(256)
    for key, value in (("bootstrap.servers", brokers), ("group.id", "chaos-reader"), ("enable.partition.eof", "true"),
                       ("enable.auto.commit", "false"), ("log_level", "0")):
        assert lib.rd_kafka_conf_set(conf, key.encode(), value.encode(), error, 256) == 0, error.value
    handle = lib.rd_kafka_new(CONSUMER, conf, error, 256)
    assert handle, error.value
    return ctypes.c_void_p(handle)


def read_all(brokers, topic, partitions):
    """All messages as dictionaries, with `key`. An AssertionError when their ends are not seen in time."""
    lib = _library()
    consumer = _consumer(lib, brokers)
    parts = ctypes.c_void_p(lib.rd_kafka_topic_partition_list_new(partitions))
    for n in range(partitions):
        lib.rd_kafka_topic_partition_list_add(parts, topic.encode(), n)
        lib.rd_kafka_topic_partition_list_set_offset(parts, topic.encode(), n, ctypes.c_int64(BEGINNING))
    lib.rd_kafka_poll_set_consumer(consumer)
    lib.rd_kafka_assign(consumer, parts)
    found, ended, deadline = [], set(), time.monotonic() + READ_S
    try:
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"topic {topic} cannot be read to its end; ended: {ended}, messages: {len(found)}"
            m = lib.rd_kafka_consumer_poll(consumer, 200)
            if not m:
                continue
            if m.contents.err == PARTITION_EOF:
                ended.add(m.contents.partition)
            elif m.contents.err == 0:
                found.append({**json.loads(ctypes.string_at(m.contents.payload, m.contents.size)),
                              "key": ctypes.string_at(m.contents.key, m.contents.key_size).decode()})
            lib.rd_kafka_message_destroy(m)
    finally:
        lib.rd_kafka_topic_partition_list_destroy(parts)
        lib.rd_kafka_consumer_close(consumer)
        lib.rd_kafka_destroy(consumer)
    return found
