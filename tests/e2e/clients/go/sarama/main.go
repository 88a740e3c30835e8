// Sarama: its synchronous producer and its consumer of single partitions with their defaults, which
// wait for the leader only and are not idempotent, and its cluster admin.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"kafscale/clients/puppet"
)

const patience = 20 * time.Second

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{
	"0":   sarama.NoResponse,
	"1":   sarama.WaitForLocal,
	"all": sarama.WaitForAll,
}

type client struct {
	address   string
	sarama    sarama.Client
	admin     sarama.ClusterAdmin
	producers map[puppet.Sending]sarama.SyncProducer
}

func main() { puppet.Main(connect, join) }

// Its defaults, and how to log in, if one has to.
func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	if login := puppet.WayIn(); login != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, login.TLS
		config.Net.SASL.Enable = true
		config.Net.SASL.User, config.Net.SASL.Password = login.User, login.Password
	}
	return config
}

func connect(address string) (puppet.Client, error) {
	connected, err := sarama.NewClient([]string{address}, newConfig())
	if err != nil {
		return nil, err
	}
	admin, err := sarama.NewClusterAdminFromClient(connected)
	producers := map[puppet.Sending]sarama.SyncProducer{}
	return &client{address, connected, admin, producers}, err
}

func (c *client) CodeOf(err error) int {
	var known sarama.KError
	if errors.As(err, &known) {
		return int(known)
	}
	var several sarama.ProducerErrors
	if errors.As(err, &several) {
		return c.CodeOf(several[0].Err)
	}
	return puppet.UnknownCode
}

func (c *client) Create(topic string, partitions int32, configs map[string]string) error {
	return c.admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions:     partitions,
		ReplicationFactor: -1,
		ConfigEntries:     pointers(configs),
	}, false)
}

func (c *client) Delete(topic string) error { return c.admin.DeleteTopic(topic) }

func (c *client) Topics() (map[string]int, error) {
	topics, err := c.admin.ListTopics()
	counts := map[string]int{}
	for name, topic := range topics {
		counts[name] = int(topic.NumPartitions)
	}
	return counts, err
}

func (c *client) Configs(topic string) (map[string]string, error) {
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}
	described, err := c.admin.DescribeConfigs(
		[]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, config := range described[0].Configs {
		found[config.Name] = config.Value
	}
	if code := described[0].ErrorCode; code != sarama.ErrNoError {
		return nil, code
	}
	return found, nil
}

func (c *client) Alter(topic string, configs map[string]string) error {
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range pointers(configs) {
		changes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value,
		}
	}
	return c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false)
}

func (c *client) Produce(
	topic string, records []puppet.Record, sending puppet.Sending,
) ([]int64, error) {
	producer, err := c.producer(sending)
	if err != nil {
		return nil, err
	}
	sent := make([]*sarama.ProducerMessage, len(records))
	for i, record := range records {
		sent[i] = &sarama.ProducerMessage{
			Topic: topic, Key: encoder(record.Key), Value: encoder(record.Value),
		}
		if record.TimestampMs > 0 {
			sent[i].Timestamp = time.UnixMilli(record.TimestampMs)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(sent[i].Headers, sarama.RecordHeader{
				Key: []byte(header[0]), Value: []byte(header[1]),
			})
		}
	}
	err = producer.SendMessages(sent)
	offsets := make([]int64, len(records))
	for i, message := range sent {
		offsets[i] = message.Offset
	}
	return offsets, err
}

func (c *client) producer(sending puppet.Sending) (sarama.SyncProducer, error) {
	if producer, found := c.producers[sending]; found {
		return producer, nil
	}
	config := newConfig()
	config.Producer.Return.Successes = true // The synchronous producer demands it.
	if sending.Codec != "" {
		config.Producer.Compression = codecs[sending.Codec]
	}
	if sending.Acks != "" {
		config.Producer.RequiredAcks = acks[sending.Acks]
	}
	if sending.Idempotent {
		config.Producer.Idempotent = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer([]string{c.address}, config)
	if err == nil {
		c.producers[sending] = producer
	}
	return producer, err
}

func (c *client) Consume(
	topic string, partition int32, offset int64, count int,
) ([]puppet.Record, error) {
	consumer, err := sarama.NewConsumer([]string{c.address}, newConfig())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	reading, err := consumer.ConsumePartition(topic, partition, offset)
	if err != nil {
		return nil, err
	}
	defer reading.Close()
	deadline := time.After(patience)
	found := []puppet.Record{}
	for len(found) < count {
		select {
		case message := <-reading.Messages():
			found = append(found, received(message))
		case <-deadline:
			return found, fmt.Errorf("only %d records came", len(found))
		}
	}
	return found, nil
}

func received(message *sarama.ConsumerMessage) puppet.Record {
	headers := [][2]string{}
	for _, header := range message.Headers {
		headers = append(headers, [2]string{string(header.Key), string(header.Value)})
	}
	return puppet.Record{
		Partition:   message.Partition,
		Offset:      message.Offset,
		TimestampMs: message.Timestamp.UnixMilli(),
		Key:         puppet.Text(message.Key),
		Value:       puppet.Text(message.Value),
		Headers:     headers,
	}
}

func (c *client) Offset(topic string, partition int32, timestampMs int64) (int64, error) {
	return c.sarama.GetOffset(topic, partition, timestampMs)
}

func (c *client) Trim(topic string, partition int32, offset int64) error {
	return c.admin.DeleteRecords(topic, map[int32]int64{partition: offset})
}

func encoder(text *string) sarama.Encoder {
	if text == nil {
		return nil
	}
	return sarama.StringEncoder(*text)
}

func pointers(texts map[string]string) map[string]*string {
	found := map[string]*string{}
	for name, text := range texts {
		found[name] = &text
	}
	return found
}
