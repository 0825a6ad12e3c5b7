import { z } from 'zod';
import { isMapping } from './paths.ts';
import { choice, flag } from '../lib/fields.ts';

/** In the JSON Schema, marks a list that can be written as its only item. */
export const ONE_OR_MORE = 'oneOrMore';

const words = (what: string) => z.string({ error: `must be ${what}` }).min(1, { error: 'must not be empty' });

/** `x` means the same as `[x]`. */
const oneOrMore = <T extends z.ZodType>(item: T, what: string, doc: string) =>
  z.preprocess(
    (value) => (typeof value === 'string' || isMapping(value) ? [value] : value),
    z
      .array(item, { error: `must be ${what}, or a list of them` })
      .meta({ description: doc, [ONE_OR_MORE]: true }),
  );

/** Not `daily.*`: the star would be literal. */
const prefix = words('an event type prefix or "*"').refine((value) => value === '*' || !value.includes('*'), {
  error: (issue) => `is a plain prefix: write "${String(issue.input).replace(/\*.*$/, '')}", without a star`,
});
const prefixes = oneOrMore(
  prefix,
  'an event type prefix or "*"',
  'Prefixes of event types; `*` matches every type.',
);

const boundSecret = z.strictObject(
  {
    secret: words('text').describe('A secret, or several with spaces or line breaks between.'),
    teams: z
      .array(words('the id of a team'), { error: 'must be a list of team ids' })
      .min(1, { error: 'must name a team; for a secret of every team write the secret alone' })
      .describe('Ids of the teams whose events it may sign. An event of another team is refused with 401.'),
  },
  { error: 'must be a secret, or a mapping with secret and teams' },
);

export const secrets = z
  .array(
    z.union([words('text'), boundSecret], { error: 'must be a secret, or a mapping with secret and teams' }),
    { error: 'must be a list' },
  )
  .default([])
  .describe(
    'Secrets that deliveries may be signed with; each is tried. To rotate, add the new one in front of the old one: as another item, or in the same file or variable, with a line break or space between (`millrace webhooks rotate` does). An item may also be a mapping with `secret` and `teams`: a sender with that secret can send events of these teams only.',
  );

/** An item of `signing.secrets` as it is written. */
export type WrittenSecret = z.output<typeof secrets>[number];

const requirement = z.strictObject(
  {
    match: prefixes,
    fields: z
      .array(z.enum(['team', 'user', 'clientUser'], { error: 'must be one of team, user, clientUser' }), {
        error: 'must be a list of team, user, clientUser',
      })
      .describe('Ids that the envelope must hold.'),
  },
  { error: 'must be a mapping with match and fields' },
);

export const requirements = z
  .array(requirement, { error: 'must be a list' })
  .default([
    { match: ['labtest.match_review.'], fields: ['team'] },
    { match: ['message.attempt.'], fields: [] },
    { match: ['*'], fields: ['team', 'user', 'clientUser'] },
  ])
  .describe(
    'Which ids an event needs, by type; the first match decides. Events without them go to quarantine.',
  );

const sink = z
  .looseObject(
    {
      type: words('a type of sink, or the path of your own sink module').describe(
        'A built-in type, or the path of your own module (`./my-sink.js`), relative to this file.',
      ),
      required: flag(
        true,
        'Whether an error in its options or its access that waiting cannot mend ends the start, and whether `acknowledge: delivered` waits for this sink. Others are tried again, and get events as they can. One that is down never ends a start.',
      ),
      oversize: choice(
        ['dead-letter', 'claim-check'],
        'dead-letter',
        'What to do with an event that is too large for this sink; see claimCheck.',
      ),
      continues: words('the name of a sink')
        .optional()
        .describe(
          'The former name of this sink, or a sink it replaces: it continues at the position of that sink, with the events that wait for it. A files sink that continues another must keep its `path`: `reconcile` looks for events nowhere else.',
        ),
      claimCheck: words('the name of a files sink')
        .optional()
        .describe(
          'The files sink that keeps large events for `oversize: claim-check`; default: the only one.',
        ),
    },
    { error: 'must be a mapping with a type' },
  )
  .transform(({ type, required, oversize, claimCheck, continues, ...options }) => {
    return {
      type,
      required,
      oversize,
      claimCheck: claimCheck ?? null,
      continues: continues ?? null,
      options,
    };
  });

const byName = <T extends z.ZodType>(what: 'sink' | 'source', item: T) => {
  const error = `is not a name for a ${what}: use lower-case letters, digits and dashes, a letter first`;
  const name = z.string().regex(/^[a-z][a-z0-9-]*$/, { error });
  return z.record(name, item, { error: `must be a mapping of names to ${what}s` }).default({});
};

export const sinks = byName('sink', sink).describe(
  'The sinks, by name. Each has `type`, `required` and the options of its type.',
);

const source = z
  .looseObject({ type: words('a type of source') }, { error: 'must be a mapping with a type' })
  .transform(({ type, ...options }) => ({ type, options }));

export const sources = byName('source', source).describe(
  "Further inputs beside webhooks, by name: what the service's own ETL pipelines publish. Each has `type` and the options of its type.",
);

const paths = (doc: string) =>
  oneOrMore(words('a path such as "/data/name"'), 'a path such as "/data/name"', doc).optional();

const redaction = {
  redact: paths(
    'Paths of values that do not leave: JSON Pointers, in which `*` is any member or element and `**` any number of levels. `mask` takes their place.',
  ),
  remove: paths('Paths of members that do not leave, their names included; in an array a null stays.'),
  only: paths('Paths of all that leaves, beside the fields of the envelope.'),
  mask: words('text')
    .optional()
    .describe('Text in the place of what `redact` names; without it that becomes null.'),
};

const entry = z.strictObject(
  {
    target: words('a sink, or sink:destination').describe('A sink, or `sink:destination`.'),
    ...redaction,
  },
  { error: 'must be a sink, sink:destination, or a mapping with target' },
);

const route = z.strictObject(
  {
    match: prefixes,
    to: oneOrMore(
      z.union([words('a sink, or sink:destination'), entry], {
        error: 'must be a sink, sink:destination, or a mapping with target',
      }),
      'a sink, or sink:destination',
      'Sinks, or `sink:destination`; an empty list goes nowhere. An item may also be a mapping: `target`, with a `redact`, `remove`, `only` and `mask` of its own, which count for it instead of those of the route.',
    ),
    ...redaction,
  },
  { error: 'must be a mapping with match and to' },
);

export const routes = z
  .array(route, { error: 'must be a list' })
  .optional()
  .describe('Rules in order; the first match decides. Without this key every event goes to every sink.');

/** The value of `sinks.<name>`; the sink module checks the options. */
export type SinkConfig = z.output<typeof sink>;

/** A route as it is written. */
export type WrittenRoute = z.output<typeof route>;

/** The redaction keys of a route, or of an entry of its `to`. */
export type WrittenRedaction = Partial<Pick<z.output<typeof entry>, keyof typeof redaction>>;

/** Keys of a sink or source that are not options of its type. */
export const SINK_KEYS = ['type', 'required', 'oversize', 'continues', 'claimCheck'] as const;
export const SOURCE_KEYS = ['type'] as const;
