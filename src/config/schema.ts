import {
  bytes,
  choice,
  count,
  duration,
  flag,
  NOT_EMPTY,
  optionalFlag,
  optionalText,
  port,
  section,
  status,
  text,
  texts,
  TIMER,
} from '../lib/fields.ts';
import { LARGEST_BODY } from '../core/archive.ts';
import { RESOURCE_FIELDS } from '../history/written-resources.ts';
import { PATH_FIELDS } from '../history/service/paths.ts';
import { storageSection } from '../storage/fields.ts';
import { kafkaJournal } from '../journal/kafka/config.ts';
import { requirements, routes, secrets, sinks, sources } from './lists.ts';

const FIELD = { pattern: '^\\S+$', hint: 'must be the name of a field' } as const;
const HEADER = { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", hint: 'must be the name of a header' } as const;
const AT_LEAST_ONE = { min: 1 } as const;

/** Every key of a config. Lists, sinks and routes are in lists.ts. */
export const CONFIG = section({
  server: section({
    host: text('0.0.0.0', 'Address the receiver listens on.'),
    port: port(8080, 'Port the receiver listens on; 0 takes any free one.'),
    path: text('/webhooks', 'Path that takes deliveries.', {
      pattern: '^/[^?#\\s]*$',
      hint: 'must start with / and hold no ? or #',
    }),
    reusePort: flag(
      false,
      'Lets several processes listen on one port (Linux); the kernel distributes the connections.',
    ),
    maxBodyBytes: bytes('10MiB', 'Largest body, before and after decompression; 16MiB at most.', {
      min: 1,
      max: LARGEST_BODY,
    }),
    maxDecompressionRatio: count(
      100,
      'Largest ratio of decompressed to compressed bytes; a body of at most 64 KiB decompressed is accepted at any ratio.',
      { min: 1, max: 10_000 },
    ),
    unverifiedBytes: bytes(
      '8MiB',
      'Work per minute that one client address may cause with deliveries that are not authentic, in bytes read, decompressed or hashed. Above it, costly deliveries from that address (compressed, in chunks, above 64 KiB, or signed with v1a) are answered 429; all addresses together have twice as much, and a quarter of that again each second. Addresses that have sent an authentic delivery have a limit of their own, eight times as much a second, and wait for it instead. 0 means no limit.',
    ),
    trustedProxies: count(
      0,
      'Number of proxies in front that each add the address of their peer to `X-Forwarded-For`; unverifiedBytes needs it to tell clients apart. 0 uses the address of the connection.',
      { max: 16 },
    ),
    headersTimeout: duration('10s', 'Longest time to receive the headers of a request.', TIMER),
    bodyTimeout: duration('8s', 'Longest time to receive the body, after the headers.', TIMER),
    keepAliveTimeout: duration(
      '65s',
      'How long an idle connection is kept open; set it higher than at the load balancer.',
      TIMER,
    ),
    maxConnections: count(
      10_000,
      'Most connections at once, fewer where the limit of open files is too low for them. A new one replaces the one that is idle longest; if none is idle, the new one is closed.',
      AT_LEAST_ONE,
    ),
    maxHeaderBytes: bytes('16KiB', 'Largest header block of a request.', { min: 1024, max: 1024 * 1024 }),
    answerTimeout: duration(
      '10s',
      'Longest time from the headers to the answer, the body included; then 503. The sender gives up after 15s.',
      TIMER,
    ),
    retryAfter: duration('10s', 'Value of Retry-After in a 503 answer.', TIMER),
  }),
  admin: section({
    enabled: flag(
      true,
      'Whether health (`/livez`, `/readyz`), `/metrics`, the console and the API of the commands are served at all.',
    ),
    host: text(
      '127.0.0.1',
      'Address of the admin listener. Any address other than loopback needs admin.token.',
    ),
    port: port(9090, 'Port of the admin listener; 0 takes any free one.'),
    token: optionalText(
      'Bearer token of 16 characters or more, for access to the admin listener from other machines; commands on this machine need none. When it is set, /metrics needs it too.',
      {
        sensitive: true,
        pattern: '^\\S{16,}$',
        hint: 'must be at least 16 characters, without spaces (`openssl rand -hex 32` makes one)',
      },
    ),
  }),
  console: section({
    enabled: flag(true, 'Whether the admin listener serves the console, a page at `/console`.'),
    payloads: flag(
      false,
      'Whether the console shows the bodies of events. They are health data: leave it off where the screen is not private.',
    ),
  }),
  signing: section({
    secrets,
    scheme: choice(
      ['standard-webhooks', 'hmac', 'none'],
      'standard-webhooks',
      'How deliveries are signed. `none` accepts anything and needs signing.insecure.',
    ),
    tolerance: duration(
      '5m',
      "Largest difference between a signature's timestamp and now, in either direction.",
      { min: 1000 },
    ),
    insecure: flag(
      false,
      'Must be true for the scheme `none`: confirms that strangers cannot reach the endpoint.',
    ),
    hmac: section({
      header: text('x-signature', 'Header with the signature.', HEADER),
      encoding: choice(['hex', 'base64'], 'hex', 'How the signature is written.'),
      algorithm: choice(['sha256', 'sha1', 'sha512'], 'sha256', 'Hash of the HMAC.'),
      prefix: text('', 'Text before the signature in its header, such as `sha256=`.'),
      timestampHeader: optionalText(
        'Header with the time of signing, in seconds; it must be part of what is signed. Without it an old delivery can be replayed once its id is forgotten.',
        HEADER,
      ),
      idHeader: optionalText(
        'Header with the delivery id, the same for all attempts; it must be signed, as `{id}` in content. Without it the id is a hash of what is signed.',
        HEADER,
      ),
      content: optionalText(
        'What is signed; `{id}`, `{timestamp}` and `{body}` stand for those parts. Without it `{timestamp}.{body}` where there is a timestampHeader, else `{body}`.',
      ),
    }),
  }),
  envelope: section({
    require: requirements,
    type: text('event_type', 'Top-level field with the event type.', FIELD),
    team: text('team_id', 'Top-level field with the team id.', FIELD),
    user: text('user_id', 'Top-level field with the user id.', FIELD),
    clientUser: text('client_user_id', "Top-level field with the team's own id of the user.", FIELD),
    teams: texts('Teams whose events are accepted; events of others go to quarantine. Empty accepts all.'),
    userIds: choice(['uuid', 'text'], 'uuid', 'Format of team and user ids.'),
    maxDepth: count(128, 'Deepest nesting of a body; events with deeper nesting go to quarantine.', {
      min: 2,
      max: 10_000,
    }),
  }),
  acknowledge: choice(
    ['journaled', 'delivered'],
    'journaled',
    'When a delivery is answered with 2xx: once it is on disk, or once every required sink has it. `delivered` keeps nothing on disk and needs no volume.',
  ),
  journal: section({
    type: choice(
      ['local', 'kafka'],
      'local',
      'Where events wait for their sinks: on the disk of this machine, or in a topic that a fleet shares (`serve --role`).',
    ),
    path: text('./data/journal', 'Folder of the journal; not with `type: kafka`.', NOT_EMPTY),
    retention: duration(
      '7d',
      'How long delivered events are kept for replays; a sixteenth longer at most. They are removed earlier, the oldest first, when the journal or its disk would be full.',
    ),
    maxBytes: bytes(
      '10GiB',
      'Largest size of the journal. Delivered events make room before that; when none are left, deliveries are answered with 503. The same happens when the disk has less than 32 MiB free (a smaller disk: an eighth).',
      {
        min: 1024 * 1024,
      },
    ),
    dedupWindow: duration(
      '7d',
      'How long an id is remembered, so that a repeated delivery is not forwarded twice.',
    ),
    maxBacklog: count(
      0,
      'Events that may wait for the slowest sink before deliveries are answered with 503; 0 leaves that to journal.maxBytes.',
    ),
    ...kafkaJournal,
  }),
  quarantine: section({
    respond: status(
      [202, 422],
      202,
      'Answer to an authentic but invalid event. 422 makes the sender retry, and finally disable the endpoint.',
    ),
    to: optionalText(
      'With `acknowledge: delivered`: the sink (or `sink:destination`) that invalid events go to. Without it they are answered 422.',
    ),
  }),
  delivery: section({
    retryInitial: duration('500ms', 'Wait before the first retry; it doubles from there.', TIMER),
    retryMax: duration('30s', 'Longest wait between two retries.', TIMER),
    giveUpAfter: duration(
      '0ms',
      'Age at which an undelivered event becomes a dead letter, from its receipt, also over restarts; for a retried dead letter, an event released from quarantine or a replayed one, from its first try. 0 retries forever.',
    ),
    sendTimeout: duration(
      '2m',
      'How long a sink may take to answer a batch. After that the sink is paused and the batch is sent again. A sink with long-running work can ask for more.',
      TIMER,
    ),
    downAfter: duration(
      '60s',
      'A sink is down when events have waited for it this long and nothing was delivered, or fewer than one try in five succeeded. It is up again when for this long more than one try in two succeeded, or nothing waits.',
      TIMER,
    ),
    maxPending: count(5000, 'Events in the in-flight window of one sink, in memory.', AT_LEAST_ONE),
    maxPendingBytes: bytes(
      '32MiB',
      'Body bytes in the in-flight window of one sink, in memory.',
      AT_LEAST_ONE,
    ),
  }),
  erasure: section({
    path: text(
      './data/erasure',
      'Folder of requests, receipts and the keyed hashes of erased users. Keep it: without it, new events of erased users are accepted.',
      NOT_EMPTY,
    ),
    grace: duration('7d', 'Time between a request and its erasure; until then it can be cancelled.'),
    folders: texts(
      'Further folders to erase from, such as exports, or URLs of object stores. The journal, the folders of files and follow-up sinks, archives that sinks of earlier configs and replays have written, and what `backfill`, `pull` and `reconcile --fill` have written with this config are always searched; a folder listed here that is missing is waited for; folders of follow-up sinks that are not in the config any more are not.',
    ),
  }),
  proof: section({
    key: optionalText(
      'File of the private key that signs manifests, receipts and the ledger of destroyed keys; made at the first start. Without it `manifest.key` in erasure.path. Keep it, on another disk than the archives: who has both can sign what was changed.',
    ),
    trust: texts(
      'Further public keys to trust: an earlier key, or those of other receivers that write to the same archive. `millrace keys public` prints them.',
    ),
  }),
  receipts: section({
    path: optionalText(
      'Folder of the log of receipts, which turns them on: each delivery is then answered with a position in a signed log that only grows.',
    ),
    origin: optionalText(
      'Name of the log, such as acme.example/events: unique, without spaces, and never changed.',
      { pattern: '^[^\\s+]+$', hint: 'must have no spaces and no +' },
    ),
    key: optionalText(
      'File of the private key that signs the log; made at the first start. Without it `receipts.key` in erasure.path. Keep it, apart from the log.',
    ),
    interval: duration('1s', 'How often the log is signed, while it grows.', TIMER),
  }),
  schema: section({
    enabled: optionalFlag(
      'Whether the receiver remembers which fields and kinds of values the events of each type have had, and says when there is a new one. Left out it does, where the journal is on this machine: acknowledge: journaled, and journal.type: local. `schema: false` turns it off.',
    ),
    alertTo: optionalText(
      'Sink (or `sink:destination`) that is sent an event millrace.schema.changed when there is something new.',
    ),
  }),
  service: section({
    baseUrl: optionalText("Address of the service's API, for backfill and follow-up pulls.", {
      pattern: '^https?://\\S+$',
      hint: 'must be an http or https URL',
    }),
    apiKey: optionalText('Team API key.', { sensitive: true }),
    apiKeyHeader: text('x-service-api-key', 'Header that carries the key.', HEADER),
    managementKey: optionalText('Org or Team Management Key, for `millrace webhooks`.', { sensitive: true }),
    managementKeyHeader: text('X-Management-Key', 'Header that carries the management key.', HEADER),
    paths: section(PATH_FIELDS),
    resources: RESOURCE_FIELDS,
  }),
  tables: texts(
    'Files with table definitions, as `millrace schema infer` writes them: their tables stand beside the built-in ones.',
  ),
  storage: storageSection,
  shutdown: section({
    deadline: duration('30s', 'Time for requests and sinks to finish after SIGTERM.', TIMER),
  }),
  log: section({
    level: choice(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
      'Lowest level that is logged.',
    ),
    format: choice(
      ['auto', 'json', 'text'],
      'auto',
      '`auto` writes text on a terminal and JSON elsewhere. Set `json` where a container has a terminal.',
    ),
  }),
  sinks,
  sources,
  routes,
});
