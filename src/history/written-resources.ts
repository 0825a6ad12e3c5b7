import { z } from 'zod';
import { RESOURCES } from './resources.ts';

/** The tables that can be filled; without the definitions, which a config needs not. */
const TABLES = [...new Set([...RESOURCES.values()].map(({ table }) => table))].toSorted();

const resource = z.strictObject(
  {
    path: z
      .string()
      .regex(/^(?=.*\{user_id\})\/(?:[^?#\s{}]|\{user_id\})*$/, {
        error: 'must start with /, have no query and contain {user_id}',
      })
      .optional()
      .describe('Path of the answer, with {user_id}.'),
    list: z
      .string()
      .optional()
      .describe(
        "Member of the answer that has the list. `groups` holds lists of groups of samples by provider; '' means that the answer is the only item. Default: the resource's name.",
      ),
    table: z
      .enum(TABLES, { error: `must be one of ${TABLES.join(', ')}` })
      .optional()
      .describe('Table that the items become rows of.'),
    pages: z
      .enum(['none', 'cursor'], { error: 'must be one of none, cursor' })
      .optional()
      .describe(
        'Whether the answer is one document (`none`, the default), or pages with a cursor to the next.',
      ),
    range: z
      .enum(['days', 'none'], { error: 'must be one of days, none' })
      .optional()
      .describe('Whether it is asked for by days (`days`, the default), or has no range.'),
  },
  { error: 'must be a mapping with path and table' },
);

/** Resources in a config, beside the built-in ones or over them. */
export const RESOURCE_FIELDS = z
  .record(z.string().regex(/^[a-z][a-z0-9_]*$/, { error: 'is not a name of a resource' }), resource, {
    error: 'must be a mapping of names to resources',
  })
  .superRefine((written, context) => {
    for (const [name, one] of Object.entries(written))
      for (const key of ['path', 'table'] as const)
        if (!RESOURCES.has(name) && one[key] === undefined)
          context.addIssue({
            code: 'custom',
            path: [name, key],
            message: 'is needed: the resource is not built in',
          });
  })
  .default({})
  .describe(
    'Resources of history that can be fetched, by name, over the built-in ones or beside them; of a built-in one only what differs. Each has `path`, `list`, `table`, `pages` and `range`.',
  );
