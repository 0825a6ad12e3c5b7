import { date, text, type TableDefinition } from './definition.ts';

export const INSURANCE: TableDefinition = {
  name: 'insurance',
  description: "Users' latest insurance. The document does not say whose; `member_id` and the insured do.",
  key: [],
  columns: [
    text('payor_code', 'the insurer'),
    text('member_id', 'the member', { required: true }),
    text('group_id', 'the group'),
    text('relationship', 'Self, Spouse, Other; open list'),
    text('insured_first_name', 'first name', { from: 'insured.first_name' }),
    text('insured_last_name', 'last name', { from: 'insured.last_name' }),
    text('insured_email', 'mail address', { from: 'insured.email' }),
    text('insured_phone_number', 'phone', { from: 'insured.phone_number' }),
    text('insured_gender', 'gender, open list', { from: 'insured.gender' }),
    date('insured_dob', 'date of birth', { from: 'insured.dob' }),
    text('insured_first_line', 'address, first line', { from: 'insured.address.first_line' }),
    text('insured_second_line', 'address, second line', { from: 'insured.address.second_line' }),
    text('insured_city', 'city', { from: 'insured.address.city' }),
    text('insured_state', 'state', { from: 'insured.address.state' }),
    text('insured_zip_code', 'zip code', { from: 'insured.address.zip_code' }),
  ],
};
