import { boolean, date, json, text, timestamp } from '../definition.ts';
import { ADDRESS, CLIENT_USER, TEAM } from './common.ts';
import { inherited, inside, position, rowsIn, table } from './table.ts';

const OWN_ID = text('user_id', 'the user, UUID', { required: true });

export const USERS = table({
  name: 'users',
  description: 'Users of the team, one a row. Their connections are in `user_connections`.',
  key: ['user_id'],
  columns: [
    OWN_ID,
    TEAM,
    CLIENT_USER,
    timestamp('created_on', 'creation'),
    text('fallback_time_zone', 'IANA name of the time zone, where a provider gives none', {
      from: 'fallback_time_zone.id',
    }),
    date('fallback_birth_date', 'date of birth, where a provider gives none', {
      from: 'fallback_birth_date.value',
    }),
    date('ingestion_start', 'first day whose data is taken'),
    date('ingestion_end', 'last day whose data is taken'),
  ],
  nested: [
    rowsIn('connected_sources', {
      name: 'user_connections',
      description: 'Providers that the users are connected to, one a row.',
      key: ['user_id', 'connection_index'],
      columns: [
        inherited(OWN_ID),
        position('connection_index'),
        ...inside(
          'source',
          [
            text('provider', 'provider identifier, open list', { from: 'slug' }),
            text('provider_name', 'name of the provider', { from: 'name' }),
            text('provider_logo', 'logo address', { from: 'logo' }),
          ],
          '',
        ),
        timestamp('created_on', 'since when'),
      ],
    }),
  ],
});

export const INSURANCE = table({
  name: 'insurance',
  description:
    "Users' latest insurance, one user a row. The document does not say whose it is; the pull does.",
  key: ['user_id'],
  columns: [
    text('user_id', 'whose it is, UUID; given by the pull, or set for the command `ndjson`', {
      required: true,
    }),
    text('payor_code', 'the insurer'),
    text('member_id', 'the member'),
    text('group_id', 'the group'),
    text('relationship', 'Self, Spouse, Other; open list'),
    ...inside('insured', [
      text('first_name', 'first name'),
      text('last_name', 'last name'),
      text('email', 'mail address'),
      text('phone_number', 'phone'),
      text('gender', 'gender, open list'),
      date('dob', 'date of birth'),
    ]),
    ...inside('insured.address', [...ADDRESS, text('country', 'country')], 'insured_'),
    ...inside('company', [text('name', 'name of the insurer'), json('address', 'its address, as it came')]),
    json('guarantor', 'who pays, as it came'),
    boolean('is_primary', 'used before other insurances'),
  ],
});
