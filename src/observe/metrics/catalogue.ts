import type { SystemStatus } from '../../core/operations.ts';
import type { SinkTrouble } from '../../core/sink.ts';
import {
  define,
  flat,
  nested,
  ofSinks,
  receiptsGauge,
  type MetricDefinition,
  type Unnamed,
  type MetricState,
  type Sample,
} from './definition.ts';
import { NO_ROUTE, type SecretUse } from './meter.ts';

const counter = define('counter');
const gauge = define('gauge');
const histogram = define('histogram');
const sinkGauge = ofSinks('gauge', ({ status }) => status.sinks);
const sinkCounter = ofSinks('counter', ({ status }) => status.sinks);
const cursorGauge = ofSinks('gauge', cursors);
const archiveGauge = ofSinks('gauge', ({ archives }) => archives);

/** All metrics of our own, in the order of the reference. Labels are bounded by the config or by a Tally. */
const DEFINITIONS: Readonly<Record<string, Unnamed>> = {
  millrace_info: gauge('Always 1.', ['version', 'acknowledge'], ({ version, config }) => [
    { labels: { version, acknowledge: config.acknowledge }, value: 1 },
  ]),
  millrace_ready: gauge('1 while deliveries are accepted, as /readyz says.', ({ ready }) => +ready),

  millrace_events_total: counter(
    'Deliveries by outcome: accepted, duplicate, quarantined, erased, gone, or the code of the error they were answered with.',
    ['source', 'outcome'],
    ({ meter }) => nested(meter.events, 'source', 'outcome'),
  ),
  millrace_event_types_total: counter(
    'Accepted events by type; a part of it that is an id, a day or other data is *. After 100 types the rest is counted as (other).',
    ['type'],
    ({ meter }) => flat(meter.types, 'type'),
  ),
  millrace_route_events_total: counter(
    'Accepted events by the route that matched; restarts at 0 with each reload.',
    ['route', 'match'],
    ({ meter, config }) => [
      ...config.routes.map(({ match }, index) => ({
        labels: { route: String(index), match: match.join(',') },
        value: meter.routes.get(String(index)),
      })),
      { labels: { route: NO_ROUTE, match: '' }, value: meter.routes.get(NO_ROUTE) },
    ],
  ),
  millrace_schema_first_seen_total: counter(
    'What accepted events had for the first time: a type, a field of a known type, a kind of value of a known field.',
    ['what'],
    ({ schema }) =>
      Object.entries(schema?.firstSeen ?? {}).map(([what, value]) => ({
        labels: { what: what.slice(0, -1) },
        value,
      })),
  ),
  millrace_schema_events_total: counter(
    'Accepted events that the schema memory looked at, and that it only counted because there were too many at once.',
    ['looked'],
    ({ schema }) =>
      schema === null ? [] : flat(Object.entries({ yes: schema.looked, no: schema.passed }), 'looked'),
  ),
  millrace_schema_fields: gauge('Fields in the schema memory.', ({ schema }) => schema?.fields ?? 0),
  millrace_schema_full: gauge(
    '1 when the schema memory is full: new types and fields may not be reported.',
    ({ schema }) => +(schema?.isFull ?? false),
  ),
  millrace_received_bytes_total: counter(
    'Body bytes read, after decompression.',
    ({ meter }) => meter.receivedBytes,
  ),
  millrace_receive_in_flight: gauge(
    'Deliveries that have begun and are not yet answered.',
    ({ receiver }) => receiver.inFlight,
  ),
  millrace_decompress_queue: gauge(
    'Bodies waiting to be decompressed.',
    ({ receiver }) => receiver.decompressing,
  ),
  millrace_connections: gauge('Open connections of senders.', ({ receiver }) => receiver.connections.open),
  millrace_connections_evicted_total: counter(
    'Idle connections closed to make room for new ones at server.maxConnections.',
    ({ receiver }) => receiver.connections.evicted,
  ),
  millrace_connections_dropped_total: counter(
    'New connections closed at once because server.maxConnections was reached and none was idle.',
    ({ receiver }) => receiver.connections.dropped,
  ),
  millrace_receive_seconds: histogram(
    'Time from the end of the headers of a delivery to its answer.',
    ({ meter }) => meter.receiving,
  ),
  millrace_commit_seconds: histogram(
    'Time of one group commit of the journal, fsync included, as seen by the deliveries waiting for it.',
    ({ meter }) => meter.committing,
  ),
  millrace_signature_matches_total: counter(
    'Deliveries by the secret that matched: its index in signing.secrets. Restarts at 0 with each reload.',
    ['index'],
    (state) => bySecret(state, (use) => use?.matches ?? 0),
  ),
  millrace_signature_secret_last_used_timestamp_seconds: gauge(
    'When a secret last matched; 0 when it has not matched since the start or the last reload. A secret that stays at 0 can be retired.',
    ['index'],
    (state) => bySecret(state, (use) => (use?.lastUsed ?? 0) / 1000),
  ),

  millrace_journal_bytes: gauge(
    'Size of the journal, free pages not counted.',
    ({ status }) => status.journal.bytes,
  ),
  millrace_journal_max_bytes: gauge(
    'journal.maxBytes: above it deliveries are answered 503.',
    (state) => state.status.journal.maxBytes,
  ),
  millrace_journal_events: gauge(
    'Events in the journal, delivered ones within retention included.',
    (state) => state.status.journal.events,
  ),
  millrace_journal_damaged_records: gauge(
    'Damaged records found in the journal. If there are any, check the disk.',
    ({ status }) => status.journal.damaged,
  ),
  millrace_journal_trouble_since_timestamp_seconds: gauge(
    'Since when the journal accepts nothing, by code: `journal_full` (its limit, or the disk). `millrace status` says which. No series without a problem.',
    ['code'],
    ({ status }) => [...earliest({}, status.journal.troubles ?? [])],
  ),

  millrace_sink_up: sinkGauge(
    '1 while the sink takes events; 0 while it is opening, stopped, or down as `delivery.downAfter` says.',
    ({ mode }) => +(mode === 'running'),
  ),
  millrace_sink_trouble_since_timestamp_seconds: gauge(
    'Since when the sink has had a problem, by code, even if it is up: a file that cannot be closed, a folder that cannot be written. No series without a problem.',
    ['sink', 'code'],
    ({ status }) => status.sinks.flatMap(({ sink, troubles }) => [...earliest({ sink }, troubles)]),
  ),
  millrace_sink_lost_records: sinkGauge(
    'Records that the sink had confirmed and that were found missing within the last day; `millrace status` prints how to write them again.',
    ({ troubles }) => troubles.reduce((sum, { lost = 0 }) => sum + lost, 0),
  ),
  millrace_sink_skipped_total: counter(
    'Events that the sink confirmed without being able to act on them, by what they are: completions of data that no operation of the service reads, at a follow-up sink. Restarts at 0 when the sink is opened.',
    ['sink', 'what'],
    ({ status }) =>
      status.sinks.flatMap(({ sink, skipped }) =>
        Object.entries(skipped).map(([what, value]) => ({ labels: { sink, what }, value })),
      ),
  ),
  millrace_table_newest_received_timestamp_seconds: gauge(
    'When the newest event was received that a postgres sink has written into the table since its start. `millrace load --status --metrics` has it for the whole table of any database.',
    ['sink', 'table'],
    ({ status }) =>
      status.sinks.flatMap(({ sink, newest }) =>
        Object.entries(newest).map(([table, at]) => ({ labels: { sink, table }, value: at / 1000 })),
      ),
  ),
  millrace_sink_backlog_events: cursorGauge(
    'Events that wait for the sink; of more than 10,000 that it has not looked at yet, also those for others.',
    ({ backlog }) => backlog,
  ),
  millrace_sink_backlog_bytes: cursorGauge(
    'Bytes of the journal from the oldest of them on, also of what is for others.',
    ({ backlogBytes }) => backlogBytes,
  ),
  millrace_sink_backlog_age_seconds: cursorGauge(
    'Age of the oldest of them.',
    ({ backlogAge }) => backlogAge / 1000,
  ),
  millrace_sink_queue_events: sinkGauge(
    'Deliveries in the in-flight window of the sink, including those being sent.',
    ({ pending }) => pending,
  ),
  millrace_sink_held_events: sinkGauge(
    'Deliveries that the sink has on its own disk and has not yet delivered; they are in its backlog, too.',
    ({ held }) => held,
  ),
  millrace_sink_sends_in_flight: sinkGauge('Batches being sent now.', ({ inFlight }) => inFlight),
  millrace_sink_delivered_total: sinkCounter(
    'Deliveries the sink has confirmed. Restarts at 0 when a reload replaces the sink.',
    ({ delivered }) => delivered,
  ),
  millrace_sink_retries_total: sinkCounter(
    'Deliveries that failed, and are sent again. Restarts at 0 when a reload replaces the sink.',
    ({ retried }) => retried,
  ),
  millrace_sink_dead_letters_total: counter(
    'Deliveries that became dead letters, by code; after 50 codes of a sink the rest is counted as (other).',
    ['sink', 'code'],
    (state) => [...codesWithoutDeadLetters(state), ...nested(state.meter.deadLetters, 'sink', 'code')],
  ),
  millrace_delivery_seconds: histogram(
    'Time from the receipt of an event to its confirmation by the sink; without replayed events.',
    ['sink'],
    ({ meter }) => flat(meter.delivering, 'sink'),
  ),
  millrace_send_seconds: histogram('Time to send one batch to the sink.', ['sink'], ({ meter }) =>
    flat(meter.sending, 'sink'),
  ),

  millrace_receipts_entries: receiptsGauge(
    'Entries of the log of receipts that are signed.',
    ({ entries }) => entries,
  ),
  millrace_receipts_waiting: receiptsGauge(
    'Events that the signed log of receipts does not have yet.',
    ({ waiting }) => waiting,
  ),
  millrace_receipts_behind: receiptsGauge(
    '1 while the log of receipts cannot be written: deliveries are answered without receipts.',
    ({ behindSince }) => +(behindSince !== null),
  ),

  millrace_archive_head: archiveGauge(
    'Hash of the last line of the manifest, its first 12 digits as a number: written in hexadecimal again, it is what `archive verify --head` takes.',
    ({ head }) => Number.parseInt(head.slice(0, 12), 16),
  ),
  millrace_archive_manifest_bytes: archiveGauge(
    'Size of the manifest, which only grows.',
    ({ bytes }) => bytes,
  ),
  millrace_archive_heads_lost: archiveGauge(
    'Noted heads that the manifest no longer holds: an older manifest was restored, or it was changed.',
    ({ lost }) => lost,
  ),

  millrace_quarantined_total: counter(
    'Reasons why events were quarantined; an event can have several.',
    ['code'],
    (state) => flat(state.meter.invalid, 'code'),
  ),
  millrace_quarantine_events: gauge('Events in quarantine now.', ({ status }) => status.journal.quarantined),
  millrace_dead_letter_events: gauge('Dead letters now.', ({ status }) => status.journal.deadLetters),

  millrace_reloads_total: counter('Reloads of the config by result.', ['result'], ({ meter }) => {
    const { succeeded, failed } = meter.reloads;
    return flat(Object.entries({ succeeded, failed }), 'result');
  }),
  millrace_config_in_force: gauge(
    '1 when the config file as last read is in force; 0 when it could not be used and the previous one is still in force.',
    ({ meter }) => +(meter.reloads.error === null),
  ),
  millrace_config_loaded_timestamp_seconds: gauge(
    'When the config in force was loaded.',
    ({ meter }) => meter.reloads.lastSuccess / 1000,
  ),
};

export const METRICS: readonly MetricDefinition[] = Object.entries(DEFINITIONS).map(([name, definition]) => {
  return { name, ...definition };
});

function bySecret({ meter, config }: MetricState, read: (use: SecretUse | undefined) => number): Sample[] {
  return config.signing.secrets.map((_, index) => ({
    labels: { index: String(index) },
    value: read(meter.secrets.get(index)),
  }));
}

/** Codes that dead letters of any sink can have: their series start at 0, so that the first one is an increase. */
const DEAD_CODES = ['gave_up', 'not_redacted', 'rejected', 'too_large'];

function codesWithoutDeadLetters({ meter, status }: MetricState): Sample[] {
  return status.sinks.flatMap(({ sink }) =>
    DEAD_CODES.filter((code) => meter.deadLetters.get(sink)?.has(code) !== true).map((code) => {
      return { labels: { sink, code }, value: 0 };
    }),
  );
}

/** One sample a code. */
function* earliest(
  labels: Readonly<Record<string, string>>,
  troubles: readonly SinkTrouble[],
): Generator<Sample> {
  for (const [code, [first]] of Map.groupBy(troubles, (trouble) => trouble.code))
    yield { labels: { ...labels, code }, value: (first?.since ?? 0) / 1000 };
}

/** Cursors of configured sinks. */
function cursors({ status: { journal, sinks } }: MetricState): SystemStatus['journal']['cursors'] {
  return journal.cursors.filter((cursor) => sinks.some(({ sink }) => sink === cursor.sink));
}
